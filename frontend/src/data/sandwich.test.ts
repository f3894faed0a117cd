import assert from "node:assert/strict";
import { test } from "node:test";
import type { Cell } from "./api.ts";
import { sandwich } from "./sandwich.ts";
import type { Table } from "./table.ts";
import { valueAt } from "./table.ts";

const COLUMNS = ["id", "parent", "name", "kind", "depth", "total_time", "self_time", "count"];

function table(rows: Cell[][]): Table {
  const values = COLUMNS.map((name, at) => [name, { values: rows.map((row) => row[at] ?? null) }] as const);
  return { columns: COLUMNS.map((name) => ({ name, unit: "count" })), values: Object.fromEntries(values), rows: rows.length };
}

function rowsOf(found: Table | null): Cell[][] | null {
  if (found === null) return null;
  return Array.from({ length: found.rows }, (_, row) => COLUMNS.map((name) => valueAt(found.values[name]!, row)));
}

/** `selftime.load(...).view("flame", min_share=0)` of `a(b(a, c))`, `b(c)` and `d(b)`. */
const GRAPH = table([
  [0, null, "a", "operator", 0, 100_000, 50_000, 1],
  [1, 0, "b", "operator", 1, 50_000, 25_000, 1],
  [2, 1, "a", "operator", 2, 20_000, 20_000, 1],
  [3, 1, "c", "operator", 2, 5_000, 5_000, 1],
  [4, null, "b", "operator", 0, 40_000, 30_000, 1],
  [5, 4, "c", "operator", 1, 10_000, 10_000, 1],
  [6, null, "d", "operator", 0, 30_000, 20_000, 1],
  [7, 6, "b", "operator", 1, 10_000, 10_000, 1],
]);

test("what a name called is what the server says", () => {
  assert.deepEqual(rowsOf(sandwich(GRAPH, "top_down", "b", "operator", 100_000)), [
    [0, null, "b", "operator", 0, 100_000, 65_000, 3],
    [1, 0, "a", "operator", 1, 20_000, 20_000, 1],
    [2, 0, "c", "operator", 1, 15_000, 15_000, 2],
  ]);
});

test("a name within itself counts once", () => {
  assert.deepEqual(rowsOf(sandwich(GRAPH, "top_down", "a", "", 100_000)), [
    [0, null, "a", "operator", 0, 100_000, 50_000, 1],
    [1, 0, "b", "operator", 1, 50_000, 25_000, 1],
    [2, 1, "a", "operator", 2, 20_000, 20_000, 1],
    [3, 1, "c", "operator", 2, 5_000, 5_000, 1],
  ]);
  assert.deepEqual(rowsOf(sandwich(GRAPH, "bottom_up", "a", "", null)), [
    [0, null, "a", "operator", 0, 100_000, 100_000, 1],
  ]);
});

test("what a name was called from is what the server says", () => {
  assert.deepEqual(rowsOf(sandwich(GRAPH, "bottom_up", "b", "operator", 100_000)), [
    [0, null, "b", "operator", 0, 100_000, 40_000, 3],
    [1, 0, "a", "operator", 1, 50_000, 50_000, 1],
    [2, 0, "d", "operator", 1, 10_000, 10_000, 1],
  ]);
});

test("what is in merged branches is a node of its own", () => {
  assert.deepEqual(rowsOf(sandwich(GRAPH, "bottom_up", "b", "operator", 103_000)), [
    [0, null, "b", "operator", 0, 103_000, 40_000, 3],
    [1, 0, "a", "operator", 1, 50_000, 50_000, 1],
    [2, 0, "d", "operator", 1, 10_000, 10_000, 1],
    [3, 0, "(other)", "operator", 1, 3_000, 3_000, 0],
  ]);
});

test("a name that the graph does not have, or of another kind, has no table", () => {
  assert.equal(sandwich(GRAPH, "top_down", "e", "", null), null);
  assert.equal(sandwich(GRAPH, "top_down", "b", "kernel", null), null);
});
