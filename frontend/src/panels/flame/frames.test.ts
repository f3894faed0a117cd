import assert from "node:assert/strict";
import test from "node:test";
import type { FullTable } from "../../parts/data/full-table.ts";
import { deepest, minimumShare, foldedStacks, framesInTime, framesOf, label, linkOf, nodeFacts, threadsOf } from "./frames.ts";

function table(rows: [name: string, kind: string, parent: number | null, total: number, self: number][]): FullTable {
  const column = (at: number) => rows.map((row) => row[at] ?? null);
  return {
    options: { metric: "auto" },
    columns: {
      name: column(0), kind: column(1), parent: column(2), total_time: column(3), self_time: column(4),
      count: rows.map(() => 2),
    },
    rows: rows.length, total: rows.length, totals: {}, lacks: [],
  };
}

const host = framesOf(table([
  ["train.py(3): main", "frame", null, 90, 10],
  ["aten::conv2d; wide", "operator", 0, 80, 80],
  ["other", "operator", null, 10, 10],
]), "weight");

test("an empty table is no tree, and no folded stacks", () => {
  const none = framesOf(table([]), "weight");
  assert.equal(none.tree.roots.length, 0);
  assert.equal(foldedStacks(none), "");
});

test("`auto` is told by what the leaves are", () => {
  assert.equal(host.metric, "host");
  assert.equal(framesOf(table([["gemm", "kernel", null, 1, 1]]), "weight").metric, "device");
});

test("a node's share is of the whole and of the focus around it", () => {
  const node = nodeFacts(host, 1, 0);
  assert.equal(node.share, 0.8);
  assert.equal(node.shareOfFocus, 80 / 90);
  assert.equal(nodeFacts(host, 2, 0).shareOfFocus, null);
  assert.equal(node.count, 2);
});

test("a frame's label leaves its folders out", () => {
  assert.equal(label("/data/a(1)/train.py(42): step", "frame"), "train.py(42): step");
  assert.equal(label("<built-in method run>", "frame"), "<built-in method run>");
  assert.equal(label("nn.Module: Linear_0", "module"), "Linear_0");
  assert.equal(label("void a/b(int)", "kernel"), "void a/b(int)");
});

test("a narrow focus asks for finer nodes, in steps", () => {
  assert.equal(minimumShare(1), 0.001);
  assert.equal(minimumShare(0.5), 0.0001);
  assert.equal(minimumShare(0.1), 0.0001);
  assert.equal(minimumShare(0.02), 0.00001);
  assert.equal(minimumShare(0), 0.001);
  assert.equal(minimumShare(1e-12), 1e-7);
});

test("folded stacks add up to the whole and hold no separators of their own", () => {
  assert.equal(
    foldedStacks(host),
    "train.py(3):_main 10\ntrain.py(3):_main;aten::conv2d__wide 80\nother 10\n",
  );
});

test("frames make chains, which modules begin and operators end", () => {
  assert.deepEqual(["module", "frame", "operator", undefined].map((kind) => linkOf(kind)), [
    "begins", "continues", "stands alone", "stands alone",
  ]);
  assert.deepEqual([linkOf("module", "callers"), linkOf("frame", "callers")], ["stands alone", "begins or continues"]);
});

const timed: FullTable = {
  options: { metric: "host" },
  columns: {
    name: ["main", "mm", "mm", "backward", "mm"],
    kind: ["frame", "operator", "operator", "operator", "operator"],
    parent: [null, 0, 0, null, 3],
    total_time: [10, 2, 3, 4, 1],
    self_time: [5, 2, 3, 3, 1],
    start: [100, 101, 106, 103, 104],
    thread: ["1", "1", "1", "2", "2"],
  },
  rows: 5, total: 5, totals: {}, lacks: [],
};

test("in time each thread has its own tree, whose slices are told apart by when they began", () => {
  assert.deepEqual([...threadsOf(timed)], [["1", 10], ["2", 4]]);
  const { tree } = framesInTime(timed, "1");
  assert.deepEqual([tree.parent, tree.begin], [[-1, 0, 0], [100, 101, 106]]);
  assert.deepEqual(tree.key, ["100 main", "101 mm", "106 mm"]);
  const other = framesInTime(timed, "2");
  assert.deepEqual([other.tree.parent, other.table.columns["self_time"]], [[-1, 0], [3, 1]]);
  assert.equal(framesInTime({ ...timed, options: { metric: "device" } }, "1").tree.begin, null);
});

test("a tree is as deep as its longest path", () => {
  assert.equal(deepest(host.tree), 2);
  assert.equal(deepest(framesOf(table([]), "weight").tree), 0);
});

test("a node's facts are those of its row, and its share is of all where the table has none", () => {
  const { name, isRoot, root, share, self } = nodeFacts(host, 1, -1);
  assert.deepEqual([name, isRoot, root, share, self], ["aten::conv2d; wide", false, "train.py(3): main", 0.8, 80]);
  assert.equal(nodeFacts(host, 0, -1).isRoot, true);
  const of = (share: number) => framesOf({ ...host.table, columns: { ...host.table.columns, share: [share, null, null] } }, "weight");
  assert.equal(nodeFacts(of(0.25), 0, -1).share, 0.25);
});
