import assert from "node:assert/strict";
import test from "node:test";
import type { FullTable } from "../../parts/data/full-table.ts";
import { groupWord, placesOf } from "./freed.ts";

const table: FullTable = {
  options: {},
  columns: {
    category: [null, null, null], operator: ["aten::mm", "aten::mm", "aten::add"], file: ["a.py", "a.py", null], line: [3, 3, null],
    release_line: [9, null, null], bytes: [10, 30, 5], blocks: [1, 2, 1], median_lifetime: [7, null, 1], alive: [null, 30, null],
  },
  rows: 3, total: 3, totals: {}, lacks: [],
};

test("a group has its places of release, the most bytes first", () => {
  const places = placesOf(table, groupWord(table, 0));
  assert.deepEqual(places.map(({ line, bytes, median, lives }) => [line, bytes, median, lives]), [[null, 30, null, true], [9, 10, 7, false]]);
});

test("what is unknown is a group of its own", () => {
  assert.equal(placesOf(table, groupWord(table, 2)).length, 1);
  assert.deepEqual(placesOf(table, "nothing"), []);
});
