import assert from "node:assert/strict";
import { test } from "node:test";
import type { FullTable } from "../../parts/data/full-table.ts";
import { decades, roofLine, rooflineOf } from "./points.ts";

const TABLE: FullTable = {
  options: {}, rows: 6, total: 6, totals: {}, lacks: [],
  columns: {
    name: ["mm", "add", "copy", "outer", "convolution", "cudnn_convolution"],
    dtype: ["float16", "float32", null, "float16", "float32", null],
    self: [1e6, 3e6, 4e6, 0, 0, 2e6],
    total: [1e6, 3e6, 4e6, 1e6, 2e6, 2e6],
    self_model_flops: [8e9, 1e6, null, 0, 4e9, null],
    model_flops: [8e9, 1e6, null, 8e9, 4e9, null],
    self_model_bytes: [1e7, 1.2e7, null, 0, 1e7, null],
    peak_flops: [1e14, 1e13, null, 1e14, 1e13, null],
    peak_bytes: [1e12, 1e12, null, 1e12, 1e12, null],
  },
};
const TIMES = { self: "self", total: "total" };

test("an operator is a point by its model and the time that this took", () => {
  const { points, whole, modelled } = rooflineOf(TABLE, TIMES);
  assert.deepEqual([whole, modelled], [1e7, 6e6]);
  const [add, convolution, mm] = points;
  assert.deepEqual(points.map(({ name }) => name), ["add", "convolution", "mm"]);
  assert.deepEqual([mm?.intensity, mm?.rate, mm?.share], [800, 8e12, 0.1]);
  assert.deepEqual([mm?.roof, mm?.boundBy], [1e14, "compute"]);
  assert.deepEqual([convolution?.time, convolution?.rate], [2e6, 2e12]); // that of what it called
  assert.equal(add?.boundBy, "memory");
  assert.ok(Math.abs((add?.roof ?? 0) - 1e12 / 12) < 1);
});

test("roofs are those of the operators with a model, once each", () => {
  assert.deepEqual(rooflineOf(TABLE, TIMES).roofs.map(({ dtype, flops }) => [dtype, flops]), [["float16", 1e14], ["float32", 1e13]]);
  const unknown = { ...TABLE, columns: { ...TABLE.columns, peak_flops: Array(6).fill(null) } };
  assert.deepEqual(rooflineOf(unknown, TIMES).roofs, []);
  assert.equal(rooflineOf(unknown, TIMES).points[0]?.boundBy, "memory"); // that peak is known
  const none = { ...unknown, columns: { ...unknown.columns, peak_bytes: Array(6).fill(null) } };
  assert.equal(rooflineOf(none, TIMES).points[0]?.roof, null);
});

test("a roof rises with the memory's peak up to the peak of computation", () => {
  const roof = { dtype: null, flops: 1e13, bytes: 1e12 };
  assert.deepEqual(roofLine(roof, 0.1, 1000), [[0.1, 1e11], [10, 1e13], [1000, 1e13]]);
  assert.deepEqual(roofLine(roof, 100, 1000), [[100, 1e13], [1000, 1e13]]);
});

test("an axis ends at powers of ten", () => {
  assert.deepEqual(decades([3, 250]), [1, 1000]);
  assert.deepEqual(decades([1, 100]), [1, 1000]);
  assert.deepEqual(decades([0, -1]), [1, 10]);
});

test("an operator whose work or bytes are unknown is no point, and one below both roofs is bound by the nearer", () => {
  const of = (more: FullTable["columns"]) => rooflineOf({ ...TABLE, rows: 1, total: 1, columns: { name: ["a"], self: [1], total: [1], self_model_flops: [1], model_flops: [1], self_model_bytes: [1], ...more } }, TIMES);
  assert.deepEqual([of({ self_model_flops: [0] }), of({ self_model_bytes: [0] }), of({ self: [0], total: [0] })].map(({ points }) => points.length), [0, 0, 0]);
  assert.equal(of({}).points.length, 1);
  assert.equal(of({}).points[0]?.boundBy, null);
});

test("the highest roof stands first", () => {
  const turned = Object.fromEntries(Object.entries(TABLE.columns).map(([name, cells]) => [name, cells.toReversed()]));
  assert.deepEqual(rooflineOf({ ...TABLE, columns: turned }, TIMES).roofs.map(({ flops }) => flops), [1e14, 1e13]);
});
