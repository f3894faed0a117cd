import assert from "node:assert/strict";
import test from "node:test";
import type { FullTable } from "../../parts/data/full-table.ts";
import { allocationsOf, linkOf, nodeFacts } from "./allocations.ts";

const table: FullTable = {
  options: {},
  columns: {
    name: ["(before the recording)", "main", "aten::mm"],
    kind: ["other", "frame", "operator"],
    id: [7, 8, 9],
    parent: [null, null, 8],
    bytes: [25, 75, 60],
    self_bytes: [25, 15, 60],
    blocks: [0, 1, 2],
    origin: [null, "user", null],
  },
  rows: 3, total: 3, totals: {}, lacks: [],
};
const allocations = allocationsOf(table);

test("parents are found among the rows of the device", () => {
  assert.deepEqual(allocations.tree.parent, [-1, -1, 1]);
  assert.deepEqual(allocations.tree.roots, [1, 0]);
  assert.equal(allocations.tree.whole, 100);
});

test("a node has its own bytes and its share", () => {
  const { own, total, share, blocks } = nodeFacts(allocations, 1);
  assert.deepEqual([own, total, share, blocks], [15, 75, 0.75, 1]);
});

test("a frame of the user begins a box", () => {
  assert.deepEqual([0, 1, 2].map((node) => linkOf(allocations, node)), ["stands alone", "begins", "stands alone"]);
});
