import assert from "node:assert/strict";
import test from "node:test";
import type { Cell } from "../../data/api.ts";
import type { FullTable } from "../../parts/data/full-table.ts";
import { allocationsOf } from "./allocations.ts";
import { changeOf, flameDifference, strengthOf } from "./flame-differences.ts";

type Row = [id: number, parent: number | null, name: string, bytes: number];

function tree(rows: Row[]) {
  const column = (at: number): Cell[] => rows.map((row) => row[at] ?? null);
  const table: FullTable = {
    options: {}, totals: {}, lacks: [], rows: rows.length, total: rows.length,
    columns: {
      id: column(0), parent: column(1), name: column(2), bytes: column(3), kind: rows.map(() => "operator"),
      file: rows.map(() => null), line: rows.map(() => null),
    },
  };
  return allocationsOf(table);
}

const before = tree([[7, null, "main", 100], [8, 7, "forward", 60], [9, 7, "old", 40]]);
const after = tree([[1, null, "main", 150], [2, 1, "forward", 90], [3, 1, "new", 50], [4, null, "eval", 5]]);

test("nodes of one place are one, and what only one side has is there", () => {
  const found = flameDifference(before, after);
  const rows = found.tree.name.map((name, node) => [name, found.before[node], found.after[node], changeOf(found, node)]);
  assert.deepEqual(rows, [
    ["main", 100, 150, 50], ["forward", 60, 90, 30], ["old", 40, 0, -40], ["new", 0, 50, 50], ["eval", 0, 5, 5],
  ]);
});

test("a box is as wide as the larger side of all that is below it", () => {
  const found = flameDifference(before, after);
  assert.deepEqual(found.tree.total, [10 + 90 + 40 + 50, 90, 40, 50, 5]);
  assert.equal(found.tree.whole, 195);
});

test("the largest change is in full colour", () => {
  const found = flameDifference(before, after);
  assert.deepEqual([found.most, strengthOf(found, 0), flameDifference(before, before).most], [50, 1, 0]);
});

test("a root below which nothing changed is left out and told", () => {
  const found = flameDifference(tree([[0, null, "earlier", 70], [1, null, "main", 3]]), tree([[0, null, "earlier", 70], [1, null, "main", 5]]));
  assert.deepEqual([found.tree.name, found.unchanged], [["main"], 70]);
});

test("two empty trees differ by nothing", () => {
  assert.deepEqual(flameDifference(tree([]), tree([])).tree.name, []);
});

test("equal nodes of one side are one, and what they hold adds up", () => {
  const twice = tree([[0, null, "main", 100], [1, 0, "forward", 60], [2, 0, "forward", 30]]);
  const found = flameDifference(twice, tree([[0, null, "main", 20]]));
  assert.deepEqual(found.tree.name.map((name, node) => [name, found.before[node], found.tree.total[node]]), [["main", 100, 110], ["forward", 90, 90]]);
});
