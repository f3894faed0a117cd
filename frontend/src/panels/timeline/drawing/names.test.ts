import assert from "node:assert/strict";
import { test } from "node:test";
import { FAMILIES, familyOf, Names } from "./names.ts";
import { VARIANTS } from "../../../draw/colour.ts";

test("collectives and data loading stand out of their categories, and of no other", () => {
  assert.deepEqual(
    [["ncclDevKernel_AllReduce", "kernel"], ["nccl:all_reduce", "user_annotation"], ["c10d::allreduce_", "cpu_op"], ["gemm", "kernel"]].map(([name = "", category = ""]) => familyOf(name, category)),
    ["collective", "collective", "operator", "kernel"],
  );
  assert.deepEqual(
    [["enumerate(DataLoader)#next", "user_annotation"], ["DataLoader", "cpu_op"], ["DataLoader", "kernel"], ["forward", "user_annotation"], ["aten::mm", "cpu_op"]].map(([name = "", category = ""]) => familyOf(name, category)),
    ["loading", "loading", "kernel", "mark", "operator"],
  );
  assert.deepEqual([familyOf("cudaLaunchKernel", "cuda_runtime"), familyOf("x", "new_category")], ["runtime", "other"]);
});

test("a name of one category has one code, with the colour of its family", () => {
  const names = new Names();
  assert.deepEqual([names.code("a", "kernel"), names.code("a", "cpu_op"), names.code("a", "kernel")], [0, 1, 0]);
  assert.deepEqual([names.texts, names.categories, names.widths], [["a", "a"], ["kernel", "cpu_op"], [0, 0]]);
  assert.deepEqual(names.colours.map((colour) => FAMILIES[Math.floor(colour / VARIANTS)]), ["kernel", "operator"]);
});

test("a label is short, and one that is too long for any slice is cut", () => {
  const names = new Names();
  names.code("void at::native::gemm<float>(int)", "kernel");
  names.code("x".repeat(500), "kernel");
  names.code("y".repeat(300), "kernel");
  assert.deepEqual(names.labels, ["gemm", `${"x".repeat(300)}…`, "y".repeat(300)]);
});
