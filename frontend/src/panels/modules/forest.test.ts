import assert from "node:assert/strict";
import test from "node:test";
import type { FullTable } from "../../parts/data/full-table.ts";
import type { TreeRowsQuery } from "../../parts/trees/treerows.ts";
import { nodeInAddress, parseNumbers, rowsByTime, toggleNumber } from "../../parts/trees/treerows.ts";
import { forestOf, isUniqueName, passes } from "./forest.ts";

// Net_0 100 ─┬─ Block_0 60 ── Linear_1 5
//            └─ Block_1 8  ── Linear_10 8
// outside 20
const table: FullTable = {
  options: {},
  columns: {
    name: ["Net_0", "Block_0", "Linear_1", "Block_1", "Linear_10", null],
    path: ["Net_0", "Net_0.Block_0", "Net_0.Block_0.Linear_1", "Net_0.Block_1", "Net_0.Block_1.Linear_10", null],
    id: [0, 1, 2, 3, 4, null],
    parent: [null, 0, 1, 0, 3, null],
    total_device_time: [100, 60, 5, 8, 8, 20],
    total_cpu_time: [10, 1, 1, 9, 9, 2],
    forward_device_time: [40, 20, 5, 8, 8, 20],
    backward_device_time: [50, 40, 0, 0, 0, 0],
    recompute_device_time: [10, 0, 0, 0, 0, 0],
    calls: [1, 3, 3, 5, 5, null],
  },
  rows: 6, total: 6, totals: {}, lacks: [],
};
const forest = forestOf(table, undefined);
type ForestQuery = TreeRowsQuery & { sort: string };
const all: ForestQuery = { root: -1, toggled: new Set(), at: -1, hits: null, sort: "-total_device_time" };
const nodes = (asked: Partial<ForestQuery>) => rowsByTime(forest, { ...all, ...asked }).map((row) => row.node);

test("no modules, no rows", () => {
  const none = forestOf({ ...table, columns: {}, rows: 0 }, undefined);
  assert.deepEqual(rowsByTime(none, all), []);
  assert.equal(none.outside, -1);
});

test("device time counts where there is any, unless the host's is asked for", () => {
  assert.equal(forest.metric, "device");
  assert.equal(forestOf(table, "host").by, "total_cpu_time");
  assert.equal(forest.outside, 5);
  assert.equal(forest.tree.name[5], "outside modules");
});

test("heavy branches are open at first, light ones closed", () => {
  assert.deepEqual(rowsByTime(forest, all), [
    { node: 0, depth: 0, open: true },
    { node: 1, depth: 1, open: true },
    { node: 2, depth: 2, open: null },
    { node: 3, depth: 1, open: false },
    { node: 5, depth: 0, open: null },
  ]);
});

test("a row is toggled by hand, and the chosen one is shown whatever is closed", () => {
  assert.deepEqual(nodes({ toggled: new Set([0]) }), [0, 5]);
  assert.deepEqual(nodes({ toggled: new Set([1, 3]) }), [0, 1, 3, 4, 5]);
  assert.deepEqual(nodes({ at: 4 }), [0, 1, 2, 3, 4, 5]);
});

test("a search keeps what matches and what is around it", () => {
  assert.deepEqual(nodes({ hits: new Set([4]) }), [0, 3, 4]);
});

test("a subtree stands alone", () => {
  assert.deepEqual(rowsByTime(forest, { ...all, root: 3 }).map((row) => [row.node, row.depth]), [[3, 0], [4, 1]]);
});

test("siblings are sorted, the unknown last", () => {
  assert.deepEqual(nodes({ sort: "-calls" }), [0, 3, 1, 2, 5]);
  assert.deepEqual(nodes({ sort: "calls" }), [0, 1, 2, 3, 5]);
});

test("the total is told by pass", () => {
  assert.deepEqual(passes(forest, 0), [40, 50, 10]);
});

test("what was toggled goes into the address and comes back", () => {
  assert.deepEqual(parseNumbers(undefined), new Set());
  assert.equal(toggleNumber(parseNumbers("3.1"), 2), "1.2.3");
  assert.equal(toggleNumber(parseNumbers("3"), 3), undefined);
});

test("a node of another tree is none", () => {
  assert.deepEqual(["5", "0", "6", "-2", "1.5", "", undefined].map((word) => nodeInAddress(word, forest.tree)), [5, 0, -1, -1, -1, -1, -1]);
});

test("a name that begins another's is not told by a prefix", () => {
  assert.equal(isUniqueName(forest, 2), false);
  assert.equal(isUniqueName(forest, 4), true);
});
