import assert from "node:assert/strict";
import { test } from "node:test";
import type { FullTable } from "../../../parts/data/full-table.ts";
import { cellsOf, darkness, heatOf, labelledRows, layoutHeat, median, medianOfStep, moved, placeOf, scaleOf, shownAt, under } from "./heat.ts";

function table(rows: readonly (readonly [string, number, number | null])[]): FullTable {
  return {
    options: {},
    columns: { label: rows.map(([label]) => label), step: rows.map(([, step]) => step), late: rows.map(([, , late]) => late) },
    rows: rows.length,
    total: rows.length,
    totals: {},
    lacks: [],
  };
}

const ranks = (count: number, value: (rank: number) => number) =>
  table(Array.from({ length: count }, (_, rank) => [`rank ${rank}`, 0, value(rank)] as const));

test("nothing recorded is an empty map", () => {
  const heat = heatOf(table([]), "late");
  assert.deepEqual([heat.labels, heat.steps, heat.bands], [[], [], []]);
  assert.deepEqual(scaleOf(heat.values, true), { low: 0, high: 0, most: 0 });
});

test("a value stands at its rank and step; what is unknown stays unknown", () => {
  const heat = heatOf(table([["rank 0", 4, 7], ["rank 0", 5, null], ["rank 1", 5, -3]]), "late");
  assert.deepEqual([heat.labels, heat.steps], [["rank 0", "rank 1"], [4, 5]]);
  assert.deepEqual([...heat.values], [7, Number.NaN, Number.NaN, -3]);
  const sheet = layoutHeat(heat, 600, 400);
  assert.deepEqual([sheet.ranks, sheet.steps, sheet.lines.length, sheet.columns], [1, 1, 2, 2]);
  const cells = cellsOf(heat, sheet);
  assert.deepEqual(shownAt(heat, sheet, cells, { row: 0, column: 0 }), { rank: 0, step: 0, value: 7 });
  assert.deepEqual(shownAt(heat, sheet, cells, { row: 1, column: 1 }), { rank: 1, step: 1, value: -3 });
  assert.equal(shownAt(heat, sheet, cells, { row: 1, column: 0 }), null);
});

test("ranks stand in their groups, and those of none come last", () => {
  const groups = [{ title: "stage 0", labels: ["rank 2", "rank 9"] }, { title: "stage 1", labels: ["rank 0"] }];
  const heat = heatOf(ranks(4, (rank) => rank), "late", groups);
  assert.deepEqual(heat.labels, ["rank 2", "rank 0", "rank 1", "rank 3"]);
  assert.deepEqual([...heat.values], [2, 0, 1, 3]);
  assert.deepEqual(heat.bands, [
    { title: "stage 0", from: 0, to: 1 }, { title: "stage 1", from: 1, to: 2 }, { title: "", from: 2, to: 4 },
  ]);
});

test("no row holds ranks of two groups, and groups stand apart", () => {
  const labels = (from: number, to: number) => Array.from({ length: to - from }, (_, at) => `rank ${from + at}`);
  const groups = [{ title: "a", labels: labels(0, 333) }, { title: "b", labels: labels(333, 1024) }];
  const heat = heatOf(ranks(1024, (rank) => rank), "late", groups);
  const sheet = layoutHeat(heat, 600, 300);
  assert.ok(sheet.height <= 300, String(sheet.height));
  assert.ok(sheet.lines.every(({ from, to }) => to <= 333 || from >= 333));
  assert.deepEqual(sheet.lines.map(({ from, to }) => to - from).reduce((sum, count) => sum + count), 1024);
  const second = sheet.lines.findIndex(({ from }) => from === 333);
  assert.equal(sheet.lines[second]?.first, true);
  assert.ok((sheet.lines[second]?.top ?? 0) > (sheet.lines[second - 1]?.top ?? 0) + sheet.row);
  assert.equal(under(sheet, 0, (sheet.lines[second]?.top ?? 0) - 1), null); // between the groups
});

test("of more ranks than rows the greatest is shown, and each is found", () => {
  const heat = heatOf(ranks(1000, (rank) => (rank === 437 ? 9 : 1)), "late");
  const sheet = layoutHeat(heat, 600, 300);
  assert.ok(sheet.lines.length * sheet.row <= 300 && sheet.ranks > 1);
  const place = placeOf(heat, sheet, "rank 437", 0);
  assert.ok(place !== null);
  assert.deepEqual(shownAt(heat, sheet, cellsOf(heat, sheet), place), { rank: 437, step: 0, value: 9 });
  assert.deepEqual(under(sheet, 1, (sheet.lines[place.row]?.top ?? 0) + 1), { row: place.row, column: 0 });
  assert.equal(placeOf(heat, sheet, "rank 1000", 0), null);
});

test("of more steps than pixels several share a column, and few columns are no wider than they may be", () => {
  const heat = heatOf(table(Array.from({ length: 1000 }, (_, step) => ["rank 0", step, step] as const)), "late");
  const sheet = layoutHeat(heat, 600, 300);
  assert.deepEqual([sheet.steps, sheet.columns, sheet.column], [5, 200, 3]);
  assert.deepEqual([layoutHeat(heatOf(table([["rank 0", 0, 1]]), "late"), 600, 300).column, sheet.row], [96, 22]);
});

test("a few large values do not hide the others", () => {
  const heat = heatOf(ranks(1000, (rank) => (rank < 5 ? 1000 : 100 + rank / 100)), "late");
  const scale = scaleOf(heat.values, false);
  assert.deepEqual([scale.low, scale.most], [100.05, 1000]);
  assert.ok(scale.high < 111);
  assert.deepEqual([darkness(scale, 1000), darkness(scale, 100), darkness(scale, scale.high)], [1, 0, 1]);
  assert.equal(scaleOf(heat.values, true).low, 0);
});

test("a value is held against the median of its step, of its group where ranks are grouped", () => {
  const groups = [{ title: "a", labels: ["rank 0", "rank 1"] }, { title: "b", labels: ["rank 2", "rank 3", "rank 4"] }];
  const heat = heatOf(ranks(5, (rank) => rank * 10), "late", groups);
  assert.equal(medianOfStep(heat, 0, null), 20);
  assert.equal(medianOfStep(heat, 0, heat.bands[0] ?? null), 5);
  assert.equal(medianOfStep(heat, 0, heat.bands[1] ?? null), 30);
  assert.deepEqual([median([]), median([3]), median([1, 2])], [null, 3, 1.5]);
});

test("arrow keys go from cell to cell, and no further", () => {
  const sheet = layoutHeat(heatOf(table([["rank 0", 0, 1], ["rank 1", 1, 1]]), "late"), 600, 300);
  assert.deepEqual(moved(sheet, null, "ArrowDown"), { row: 0, column: 0 });
  assert.deepEqual(moved(sheet, { row: 0, column: 0 }, "ArrowDown"), { row: 1, column: 0 });
  assert.deepEqual(moved(sheet, { row: 1, column: 1 }, "ArrowRight"), { row: 1, column: 1 });
  assert.equal(moved(sheet, { row: 1, column: 1 }, "a"), null);
});

test("names stand as near as there is room", () => {
  assert.deepEqual([labelledRows(22, 14), labelledRows(8, 14), labelledRows(3, 14)], [1, 2, 8]);
});
