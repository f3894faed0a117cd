import assert from "node:assert/strict";
import { test } from "node:test";
import { distinctNames, withoutMiddle } from "./names.ts";

test("names that are alike when short are told apart by what is their own", () => {
  const gemm = (tile: string) => ({ short: "gemm", full: `void cutlass::gemm<float, Tile<${tile}, 64>>(int)` });
  assert.deepEqual(distinctNames([gemm("128"), gemm("256"), { short: "copy", full: "copy" }]), [
    "gemm …128, 64>>(int)", "gemm …256, 64>>(int)", "copy",
  ]);
  assert.deepEqual(distinctNames([gemm("128"), gemm("128")]), ["gemm", "gemm"]);
  const long = (word: string) => {
    const full = `split_embedding_backward_codegen_rowwise_adagrad_${word}_kernel_cta_per_row_1`;
    return { short: full, full };
  };
  const [shown = ""] = distinctNames([long("weighted"), long("unweighted")]);
  assert.ok(shown.endsWith("…weighted_kernel_cta_per_row_1"), shown);
});

test("a long name keeps its beginning and its end", () => {
  const name = `${"a".repeat(100)}_kernel`;
  const [shown = ""] = distinctNames([{ short: name, full: name }]);
  assert.ok(shown.length <= 72 && shown.startsWith("aaa") && shown.endsWith("_kernel"), shown);
  assert.equal(withoutMiddle("short", 72), "short");
});
