import assert from "node:assert/strict";
import { test } from "node:test";
import type { Cell, Options } from "../../../data/api.ts";
import { originOf, sandwichWords } from "./origins.ts";

function origin(view: string, row: Record<string, Cell>, asked: Options = {}): Options | null {
  return originOf(view, (column) => row[column] ?? null, asked);
}

test("an operator's slices are those of its name, and of what tells the row apart", () => {
  const row = { name: "aten::mm", kind: "operator" };
  assert.deepEqual(origin("operators", row), { name: "aten::mm", kind: "operator" });
  assert.deepEqual(origin("operators", { ...row, input_shapes: "[[2, 3]]", file: "a.py", line: 3 }), {
    name: "aten::mm", kind: "operator", shape: "[[2, 3]]", file: "a.py", line: 3,
  });
  assert.deepEqual(origin("operators", { ...row, stack: "a.py(3): f;b.py(1): g" })?.["stack"], "a.py(3): f;b.py(1): g");
  assert.equal(origin("operators", { name: "[memory]", kind: "memory" }), null);
});

test("kinds of rows are kinds of slices", () => {
  assert.deepEqual(origin("kernels", { name: "sgemm", what: "gemm" }), { name: "sgemm", kind: "kernel" });
  assert.deepEqual(origin("flame", { name: "nn.Module: Linear_0", kind: "module" }), { name: "nn.Module: Linear_0", kind: "frame" });
  assert.deepEqual(origin("syncs", { call: "cudaStreamSynchronize", kind: "stream", operator: "aten::item" }), {
    name: "cudaStreamSynchronize", kind: "call",
  });
  assert.deepEqual(origin("annotations", { name: "data" }), { name: "data" });
});

test("copies are found by one of them, lines by their place, gaps by their time", () => {
  assert.deepEqual(origin("copies", { direction: "HtoD", longest: 17, start: 5 }), { like: 17, kind: "copy" });
  assert.deepEqual(origin("lines", { file: "a.py", line: 3, first: 9 }), { file: "a.py", line: 3 });
  assert.deepEqual(origin("idle", { cause: "sync", start: 100, duration: 900, longest: 50 }), { start: 100, end: 150 });
  assert.deepEqual(origin("steps", { step: 1, start: 100, time: 50 }), { start: 100, end: 150 });
  assert.deepEqual(origin("steps", { step: 1, start: -100, time: 150 }), { start: 0, end: 50 });
});

test("what counts is asked for as the table was", () => {
  assert.deepEqual(origin("lines", { file: "a.py", line: 3 }, { counted: true }), { file: "a.py", line: 3, counted: true });
});

test("a row of measures stands for no slices", () => {
  assert.equal(origin("overview", { metric: "x", name: "y" }), null);
  assert.equal(origin("lines", { file: null, line: null }), null);
  assert.equal(origin("anything", {}), null);
});

test("callers and callees are those of the name, or of the function on the line", () => {
  const words = (view: string, row: Record<string, Cell>) => {
    const valueOf = (column: string) => row[column] ?? null;
    return sandwichWords(view, valueOf, originOf(view, valueOf, {}));
  };
  assert.deepEqual(words("operators", { name: "aten::mm", kind: "operator", device_time_total: 9 }), {
    tree: "sandwich", of: "aten::mm", kind: "operator",
  });
  assert.deepEqual(words("operators", { name: "aten::mm", kind: "operator", device_time_total: 0 })?.["metric"], "host");
  assert.deepEqual(words("kernels", { name: "sgemm" }), { tree: "sandwich", of: "sgemm", kind: "kernel" });
  assert.deepEqual(words("lines", { file: "a.py", line: 3, function: "f", total_device_time: null }), {
    tree: "sandwich", file: "a.py", line: "3", function: "f",
  });
  assert.equal(words("steps", { step: 1, start: 100, time: 50 }), null);
});
