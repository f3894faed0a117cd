import assert from "node:assert/strict";
import { test } from "node:test";
import type { Cell, Page, Query } from "../../../data/api.ts";
import { parseQuantity } from "../../../units.ts";
import { loadColumn } from "./column-values.ts";
import { binsOfSpread, countOffScale, filtersBetween, frequent, isListed, quantile, rangeOf, scaleAtFirst, spreadOf, within } from "./spread.ts";

test("no values have no bins and no figures", () => {
  const none = spreadOf([null, null]);
  assert.deepEqual([none.unknown, none.sorted.length, quantile(none, 0.5)], [2, 0, null]);
  assert.deepEqual([binsOfSpread(none, "linear"), binsOfSpread(none, "log")], [[], []]);
});

test("quantiles lie between values in proportion", () => {
  const spread = spreadOf([4, 1, null, 3, 2]);
  assert.deepEqual([0, 0.5, 0.95, 1].map((share) => quantile(spread, share)), [1, 2.5, 3.8499999999999996, 4]);
  assert.equal(spread.sum, 10);
});

test("every value is in one bin, on either scale; 0 and less are not on that of logarithms", () => {
  const values = [-5, 0, ...Array.from({ length: 1000 }, (_, at) => 1.013 ** at)];
  const spread = spreadOf(values);
  for (const scale of ["linear", "log"] as const) {
    const bins = binsOfSpread(spread, scale);
    const counted = bins.reduce((sum, bin) => sum + bin.count, 0);
    assert.equal(counted + countOffScale(spread, scale), values.length);
    bins.forEach((bin, at) => at > 0 && assert.equal(bin.from, bins[at - 1]?.to));
  }
  assert.equal(countOffScale(spread, "log"), 2);
  assert.equal(scaleAtFirst(spreadOf(values.slice(2))), "log");
  assert.equal(scaleAtFirst(spreadOf([5, 6, 7])), "linear");
});

test("a few whole numbers have a bin each, and one value has one", () => {
  assert.deepEqual(binsOfSpread(spreadOf([1, 2, 2, 4]), "linear").map(({ from, count }) => [from, count]), [[1, 1], [2, 2], [3, 0], [4, 1]]);
  assert.deepEqual(binsOfSpread(spreadOf([7, 7]), "linear").map(({ from, count, sum }) => [from, count, sum]), [[7, 2, 14]]);
});

test("a stretch becomes filters that leave out nothing of it, and is read from them", () => {
  for (const [unit, low, high] of [["ns", 1_234_567, 9_876_543], ["ratio", 0.1234, 0.5], ["count", 3, 1234], ["bytes", 0, 5e9], ["ns", -1_234_567, -3]] as const) {
    const filters = filtersBetween("x", unit, low, high);
    const [from, to] = filters.map(({ value }) => parseQuantity(value, unit) as number) as [number, number];
    assert.ok(from <= low && to >= high, `${JSON.stringify(filters)} for ${low} to ${high}`);
    assert.ok(low - from <= Math.abs(low) / 50 && to - high <= Math.abs(high) / 50);
    assert.deepEqual(rangeOf(filters, unit), { low: from, high: to });
  }
  assert.deepEqual(filtersBetween("x", "ns", 1_230_000, 4_560_000).map(({ value }) => value), ["1.23 ms", "4.56 ms"]);
  assert.equal(rangeOf([{ column: "x", op: "is", value: "3" }], "ns"), null);
  assert.deepEqual(within(spreadOf([1, 2, 3, 4]), 2, 3), { count: 2, sum: 5 });
});

test("texts are counted, the most frequent first, the unknown among them", () => {
  assert.deepEqual(frequent(["b", "a", "b", null]), [{ value: "b", count: 2 }, { value: "a", count: 1 }, { value: null, count: 1 }]);
  assert.deepEqual([isListed("name", []), isListed("flag", []), isListed("ns", [1]), isListed("id", [1, 2])], [true, true, false, true]);
  assert.equal(isListed("id", Array.from({ length: 50 }, (_, at) => at)), false);
});

test("a column is loaded to its end, under all filters but its own", async () => {
  const asked: Query[] = [];
  const held = [1, 2, 3, 4, 5];
  const ask = async (query: Query): Promise<Page> => {
    asked.push(query);
    const values: Cell[] = held.slice(query.from ?? 0, (query.from ?? 0) + 2); // a server sends as much as fits
    return { view: "v", options: {}, all: 9, total: 5, from: query.from ?? 0, rows: values.length, columns: { x: { values } }, totals: { x: 15 }, lacks: [] };
  };
  const where = [{ column: "x", op: "from", value: "2" }, { column: "y", op: "is", value: "a" }] as const;
  const found = await loadColumn(ask, { find: "gemm", where: [...where] }, "x");
  assert.deepEqual(found, { values: held, part: null, isSummed: true });
  const few = async (query: Query): Promise<Page> => ({ ...(await ask(query)), held: 5 });
  assert.equal((await loadColumn(few, {}, "x")).part, "Of the first 5 of 9 rows, in the order of the table.");
  asked.splice(3);
  assert.deepEqual(asked.map(({ from, columns, find, where }) => [from, columns, find, where]), [0, 2, 4].map((from) => [from, ["x"], "gemm", [where[1]]]));
});
