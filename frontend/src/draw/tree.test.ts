import assert from "node:assert/strict";
import test from "node:test";
import { boxAt, boxOf, nodeAtPath, buildTree, layout, matchedWeight, matches, pathNames, path, neighbourNode, nodesOfBox, upsideDown } from "./tree.ts";

// a 100 ─┬─ b 60 ── c 60
//        └─ d 30
// e 20
const names = ["a", "b", "c", "d", "e"];
const parents = [null, 0, 1, 0, null];
const totals = [100, 60, 60, 30, 20];
const tree = buildTree(names, parents, totals);

test("an empty tree has nothing to draw", () => {
  const none = buildTree([], [], []);
  assert.deepEqual(layout(none, -1, 100), { boxes: [], rows: 0, above: 0 });
  assert.equal(neighbourNode(none, -1, "down"), -1);
});

test("siblings stand by weight or by name", () => {
  assert.deepEqual(tree.roots, [0, 4]);
  assert.equal(tree.whole, 120);
  const light = buildTree(["z", "y"], [null, null], [9, 1], "name");
  assert.deepEqual(light.roots, [1, 0]);
});

test("widths are shares of the whole, children within their parent", () => {
  const { boxes, rows } = layout(tree, -1, 120);
  assert.equal(rows, 3);
  assert.deepEqual(
    boxes.toSorted((a, b) => a.node - b.node).map((box) => [box.node, box.row, box.left, box.width]),
    [[0, 0, 0, 100], [1, 1, 0, 60], [2, 2, 0, 60], [3, 1, 60, 30], [4, 0, 100, 20]],
  );
});

test("the focused node and what is around it have the full width", () => {
  const { boxes, rows, above } = layout(tree, 1, 120);
  assert.deepEqual(boxes.map((box) => [box.node, box.row, box.width]), [
    [0, 0, 120], [1, 1, 120], [2, 2, 120],
  ]);
  assert.deepEqual([rows, above], [3, 1]);
});

test("narrow siblings are joined, and nothing is drawn within them", () => {
  const many = 1024;
  const crowd = buildTree(
    ["root", ...Array.from({ length: many }, (_, at) => `n${at}`), "within"],
    [null, ...Array.from({ length: many }, () => 0), 1],
    [many, ...Array.from({ length: many }, () => 1), 1],
  );
  const { boxes, rows } = layout(crowd, -1, 128, 1);
  assert.equal(rows, 2);
  assert.equal(boxes.filter((box) => box.row === 1).length, 128);
  assert.equal(boxes.filter((box) => box.row === 1).reduce((sum, box) => sum + box.joined, 0), many);
});

test("a negative weight, as of memory, takes no room", () => {
  const { boxes } = layout(buildTree(["a", "b"], [null, null], [10, -5]), -1, 10);
  assert.deepEqual(boxes.map((box) => box.node), [0]);
});

test("a place finds its box", () => {
  const { boxes } = layout(tree, -1, 120);
  assert.equal(boxAt(boxes, 61, 1)?.node, 3);
  assert.equal(boxAt(boxes, 95, 1), null);
});

test("a node is found again by its names, or else what is around it", () => {
  assert.deepEqual(path(tree, 2), [0, 1, 2]);
  assert.deepEqual(pathNames(tree, 2), ["a", "b", "c"]);
  assert.equal(nodeAtPath(tree, ["a", "b", "c"]), 2);
  assert.equal(nodeAtPath(tree, ["a", "b", "gone"]), 1);
  assert.equal(nodeAtPath(tree, ["gone"]), -1);
});

test("matches within matches count once", () => {
  const nested = buildTree(["conv", "aten::Conv2d", "add"], [null, 0, null], [50, 40, 10]);
  const hits = matches(nested, "CONV");
  assert.deepEqual([...hits], [0, 1]);
  assert.equal(matchedWeight(nested, hits), 50);
  assert.equal(matches(nested, "").size, 0);
});

test("arrows walk the tree and stop at its edges", () => {
  assert.equal(neighbourNode(tree, 0, "down"), 1);
  assert.equal(neighbourNode(tree, 1, "right"), 3);
  assert.equal(neighbourNode(tree, 3, "right"), 3);
  assert.equal(neighbourNode(tree, 3, "up"), 0);
  assert.equal(neighbourNode(tree, 0, "up"), 0);
  assert.equal(neighbourNode(tree, 0, "right"), 4);
});

// run 100 ── main 100 ── Net 100 ── call 100 ── forward 100 ─┬─ a 60
//                                                            └─ b 40
const deep = buildTree(
  ["run", "main", "Net", "call", "forward", "a", "b"],
  [null, 0, 1, 2, 3, 4, 4],
  [100, 100, 100, 100, 100, 60, 40],
);
const linked = (node: number) => (node === 2 ? "begins" : node < 5 ? "continues" : "stands alone");

test("a chain is one box, called by its module or else by its innermost", () => {
  const { boxes, rows } = layout(deep, -1, 100, 1, linked);
  assert.equal(rows, 3);
  assert.deepEqual(
    boxes.toSorted((a, b) => a.row - b.row || a.left - b.left).map((box) => [box.node, box.top, box.last, box.row]),
    [[1, 0, 1, 0], [2, 2, 4, 1], [5, 5, 5, 2], [6, 6, 6, 2]],
  );
  const net = boxOf(deep, boxes, 3);
  assert.equal(net?.node, 2);
  assert.deepEqual(net && nodesOfBox(deep, net), [2, 3, 4]);
  assert.equal(boxOf(deep, boxes, -1), null);
});

test("a focus within a chain has the chain over the full width", () => {
  const { boxes, rows, above } = layout(deep, 3, 100, 1, linked);
  assert.deepEqual(boxes.map((box) => [box.node, box.row]).slice(0, 2), [[1, 0], [2, 1]]);
  assert.deepEqual([rows, above], [3, 1]);
});

test("a chain ends where something else takes time", () => {
  const forked = buildTree(["run", "main", "other"], [null, 0, 0], [100, 90, 10]);
  assert.equal(layout(forked, -1, 100, 1, () => "continues").rows, 2);
});

test("in time a node stands where it began, and a gap stays", () => {
  // a from 10 to 20 with b from 12 to 14 and c from 19 to 20; d from 25 to 30
  const timed = buildTree(["a", "b", "c", "d"], [null, 0, 0, null], [10, 2, 1, 5], "given", {
    begin: [10, 12, 19, 25], key: ["10 a", "12 b", "19 c", "25 d"],
  });
  const places = (focus: number) =>
    layout(timed, focus, 200).boxes.toSorted((a, b) => a.node - b.node).map((box) => [box.node, box.left, box.width]);
  assert.deepEqual(places(-1), [[0, 0, 100], [1, 20, 20], [2, 90, 10], [3, 150, 50]]);
  assert.deepEqual(places(0), [[0, 0, 200], [1, 40, 40], [2, 180, 20]]);
  assert.equal(nodeAtPath(timed, pathNames(timed, 2)), 2);
});

test("upside down the roots are in the last row", () => {
  const { boxes, rows } = upsideDown(layout(tree, -1, 120));
  assert.deepEqual(boxes.toSorted((a, b) => a.node - b.node).map((box) => box.row), [2, 1, 0, 1, 2]);
  assert.equal(rows, 3);
});

test("of callers the nearest names the chain", () => {
  const callers = buildTree(["f", "near", "far"], [null, 0, 1], [9, 9, 9]);
  const { boxes } = layout(callers, -1, 90, 1, (node) => (node === 0 ? "stands alone" : "begins or continues"));
  assert.deepEqual(boxes.map((box) => [box.node, box.top, box.last]), [[0, 0, 0], [1, 1, 2]]);
});
