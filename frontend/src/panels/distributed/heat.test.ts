import assert from "node:assert/strict";
import { test } from "node:test";
import type { FullTable } from "../../parts/data/full-table.ts";
import { largestValueAt, labelledRows, heatOf, layoutHeat } from "./heat.ts";

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

test("nothing recorded is an empty map", () => {
  const heat = heatOf(table([]), "late");
  assert.deepEqual([heat.labels, heat.steps, heat.most], [[], [], 0]);
});

test("a value stands at its rank and step; what is unknown stays unknown", () => {
  const heat = heatOf(table([["rank 0", 4, 7], ["rank 0", 5, null], ["rank 1", 5, -3]]), "late");
  assert.deepEqual([heat.labels, heat.steps, heat.most], [["rank 0", "rank 1"], [4, 5], 7]);
  assert.deepEqual([...heat.values], [7, Number.NaN, Number.NaN, -3]);
  const sheet = layoutHeat(heat, 600, 400);
  assert.deepEqual([sheet.ranks, sheet.steps, sheet.rows, sheet.columns], [1, 1, 2, 2]);
  assert.deepEqual(largestValueAt(heat, sheet, 0, 0), { rank: 0, step: 0, value: 7 });
  assert.equal(largestValueAt(heat, sheet, 1, 0), null);
});

test("of more ranks than rows the greatest is shown, and none is left out", () => {
  const ranks = 1000;
  const heat = heatOf(table(Array.from({ length: ranks }, (_, rank) => [`rank ${rank}`, 0, rank] as const)), "late");
  const sheet = layoutHeat(heat, 600, 300);
  assert.ok(sheet.rows * sheet.row <= 300);
  assert.ok(sheet.rows * sheet.ranks >= ranks);
  const shown = Array.from({ length: sheet.rows }, (_, row) => largestValueAt(heat, sheet, row, 0)?.value ?? Number.NaN);
  assert.equal(shown.at(-1), ranks - 1);
  assert.equal(shown[0], sheet.ranks - 1);
});

test("names stand as near as there is room", () => {
  assert.deepEqual([labelledRows(22, 14), labelledRows(8, 14), labelledRows(3, 14)], [1, 2, 8]);
});

test("of more steps than pixels several share a column, and few columns are no wider than they may be", () => {
  const heat = heatOf(table(Array.from({ length: 1000 }, (_, step) => ["rank 0", step, step] as const)), "late");
  const sheet = layoutHeat(heat, 600, 300);
  assert.deepEqual([sheet.steps, sheet.columns, sheet.column], [5, 200, 3]);
  assert.deepEqual([layoutHeat(heatOf(table([["rank 0", 0, 1]]), "late"), 600, 300).column, sheet.row], [96, 22]);
});
