import assert from "node:assert/strict";
import { test } from "node:test";
import type { Cell } from "../../../data/api.ts";
import type { FullTable } from "../../../parts/data/full-table.ts";
import { binsOf, placeOf, ticksOf, widthOf } from "./bins.ts";

function table(at: Cell[], count: number[]): FullTable {
  return {
    options: {}, rows: at.length, total: at.length, totals: {}, lacks: [],
    columns: { at_least: at, count, duration: count },
  };
}

test("bins span from the shortest to the longest", () => {
  const bins = binsOf(table([1000, 10_000, 891_251, null], [5, 7, 1, 3]));
  assert.ok(bins);
  assert.equal(bins.bins.length, 3);
  assert.equal(bins.most, 7);
  assert.equal(placeOf(bins, 1000), 0);
  assert.ok(Math.abs(placeOf(bins, 1e6) - 1) < 1e-6);
  assert.deepEqual(ticksOf(bins).map((tick) => tick.text), ["1 µs", "10 µs", "100 µs", "1 ms"].slice(0, ticksOf(bins).length));
});

test("a single duration stands in the middle of a power of ten", () => {
  const bins = binsOf(table([5000], [9]));
  assert.ok(bins);
  const middle = placeOf(bins, 5000) + widthOf(bins) / 2;
  assert.ok(Math.abs(middle - 0.5) < 1e-9, String(middle));
  assert.ok(ticksOf(bins).length >= 2);
});

test("nothing has no bins; no time at all has one", () => {
  assert.equal(binsOf(table([], [])), null);
  assert.equal(binsOf(table([null], [3])), null);
  assert.ok(Number.isFinite(placeOf(binsOf(table([0], [3])) as NonNullable<ReturnType<typeof binsOf>>, 0)));
});
