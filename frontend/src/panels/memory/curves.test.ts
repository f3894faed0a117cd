import assert from "node:assert/strict";
import test from "node:test";
import type { Cell } from "../../data/api.ts";
import type { FullTable } from "../../parts/data/full-table.ts";
import { spanOf, wordOf } from "../../draw/span.ts";
import { clockOffset, curvesOf, extent, highest, pointAt, shifted, sizes, snapped, windowOf } from "./curves.ts";

type Point = [type: string | null, device: number, time: number, allocated: number, reserved: number | null];

function table(rows: Point[]): FullTable {
  const column = (at: number): Cell[] => rows.map((row) => row[at] ?? null);
  return {
    options: {},
    columns: {
      device_type: column(0), device: column(1), time: column(2), allocated: column(3), reserved: column(4),
      how: rows.map((row) => (row[0] === "CPU" ? "summed" : "recorded")),
    },
    rows: rows.length, total: rows.length, totals: {}, lacks: [],
  };
}

const curves = curvesOf(table([
  ["CUDA", 0, 10, 100, 200],
  ["CUDA", 0, 20, 150, 200],
  ["CUDA", 0, 40, 150, 300],
  ["CUDA", 0, 50, 20, 300],
  ["CPU", -1, 15, 7, null],
]));
const [cuda, host] = curves as [(typeof curves)[number], (typeof curves)[number]];

test("nothing recorded, no curve", () => {
  assert.deepEqual(curvesOf(table([])), []);
});

test("each device has a curve of its own", () => {
  assert.deepEqual(curves.map((curve) => [curve.key, curve.title, curve.times.length]), [
    ["CUDA:0", "CUDA 0", 4], ["CPU:-1", "host", 1],
  ]);
  assert.deepEqual([cuda.reserved, host.reserved], [[200, 200, 300, 300], null]);
  assert.deepEqual([cuda.atLeast, host.atLeast], [false, true]);
});

test("the peak is the first of equals", () => {
  assert.deepEqual(cuda.peak, { time: 20, allocated: 150 });
});

test("all curves have one stretch of time, never an empty one", () => {
  assert.deepEqual(extent(curves), { from: 10, to: 50 });
  assert.deepEqual(extent([host]), { from: 15, to: 1015 });
});

test("an instant has the total of the last record before it", () => {
  assert.deepEqual([5, 10, 19, 20, 99].map((time) => pointAt(cuda.times, time)), [-1, 0, 0, 1, 3]);
});

test("a stretch begins with the total that it finds", () => {
  assert.deepEqual(highest(cuda, { from: 45, to: 60 }), { time: 45, allocated: 150 });
  assert.deepEqual(highest(cuda, { from: 0, to: 15 }), { time: 10, allocated: 100 });
  assert.equal(highest(cuda, { from: 0, to: 5 }), null);
});

test("sizes are round in powers of two", () => {
  assert.deepEqual(sizes(1000, 4), [0, 256, 512, 768]);
  assert.deepEqual(sizes(0, 4), [0]);
});

test("a stretch goes into the address and comes back", () => {
  assert.deepEqual(spanOf(wordOf({ from: 10.7, to: 20.2 })), { from: 10, to: 21 });
  assert.equal(spanOf("20-10"), null);
  assert.equal(spanOf(undefined), null);
  assert.equal(wordOf(null), undefined);
});

test("what is loaded around a span is on a grid", () => {
  const limits = { from: 100, to: 10_000 };
  assert.deepEqual(windowOf({ from: 2_100, to: 2_200 }, limits), { from: 1_920, to: 2_432 });
  assert.deepEqual(windowOf({ from: 2_140, to: 2_160 }, limits), { from: 2_080, to: 2_208 });
  assert.deepEqual(windowOf({ from: 120, to: 200 }, limits), { from: 100, to: 384 });
  assert.equal(windowOf({ from: 100, to: 9_000 }, limits), null);
  assert.equal(windowOf({ from: 90_000, to: 90_100 }, limits), null);
});

test("traces that were recorded at one time have one clock", () => {
  const own = { origin: 1_000, span: { from: 0, to: 5_000_000 } };
  assert.equal(clockOffset(own, { origin: 3_000, span: { from: 0, to: 100 } }), 2_000_000);
  assert.equal(clockOffset(own, { origin: 9_000, span: { from: 0, to: 100 } }), null);
  assert.equal(clockOffset(own, { origin: null, span: { from: 0, to: 100 } }), null);
  const later = shifted(cuda, 5);
  assert.deepEqual([later.times, later.peak.time], [[15, 25, 45, 55], 25]);
});

test("an instant near a record is the record's, one far from all stays", () => {
  assert.deepEqual([12, 18, 31, 49, 9, 70].map((time) => snapped(cuda.times, time, 3)), [10, 20, 31, 50, 10, 70]);
  assert.equal(snapped([], 7, 3), 7);
});
