import assert from "node:assert/strict";
import { test } from "node:test";
import type { Picture } from "./icicle.ts";
import { paint, ROW, STRONGEST } from "./icicle.ts";
import type { Box } from "./tree.ts";

const PALETTE = { operator: "green", other: "gray", accent: "blue", text: "black", muted: "silver", focus: "orange", font: "mono" };

function box(node: number, left: number, width: number, row = 0, joined = 1): Box {
  return { node, top: node, last: node, left, width, row, joined };
}

/** What is drawn of some boxes, each as what it is, where, and in which style. */
function drawn(boxes: Box[], more: Partial<Picture> = {}, top = 0): (string | number)[][] {
  const calls: (string | number)[][] = [];
  const style = { fillStyle: "", strokeStyle: "", globalAlpha: 1, lineWidth: 1, canvas: { width: 300 } };
  const ignored = () => undefined;
  const ctx = Object.assign(style, {
    clearRect: ignored, save: ignored, restore: ignored, beginPath: ignored, rect: ignored, clip: ignored, moveTo: ignored, lineTo: ignored,
    fillRect: (x: number, y: number, w: number, h: number) => void calls.push(["fill", x, y, w, h, style.fillStyle, style.globalAlpha]),
    strokeRect: (x: number, y: number, w: number, h: number) => void calls.push(["frame", x, y, w, h, style.strokeStyle, style.lineWidth]),
    fillText: (text: string, x: number, y: number) => void calls.push(["text", text, x, y, style.fillStyle]),
    stroke: () => void calls.push(["hatch", style.strokeStyle]),
    measureText: (text: string) => ({ width: 6 * text.length }),
  }) as unknown as CanvasRenderingContext2D;
  const picture: Picture = {
    boxes, colour: () => "operator", label: ({ node }) => `node ${node} of many`, isAround: () => false, found: null, chosen: null, hovered: null, ...more,
  };
  paint({ ctx, palette: PALETTE, width: 300, height: 100, top }, picture);
  return calls;
}

test("a box has its colour, an edge and as much of its name as fits; a narrow one its colour alone", () => {
  assert.deepEqual(drawn([box(1, 10, 200), box(2, 210, 40, 1), box(3, 250, 17), box(4, 270, 16)]), [
    ["fill", 10, 0, 199, ROW - 1, "green", 0.34],
    ["fill", 10, 0, 2, ROW - 1, "green", 1],
    ["text", "node 1 of many", 17, ROW / 2 - 0.5, "black"],
    ["fill", 210, ROW, 39, ROW - 1, "green", 0.34],
    ["fill", 210, ROW, 2, ROW - 1, "green", 1],
    ["text", "nod…", 217, 1.5 * ROW - 0.5, "black"],
    ["fill", 250, 0, 16, ROW - 1, "green", 0.34],
    ["fill", 250, 0, 2, ROW - 1, "green", 1],
    ["fill", 270, 0, 15, ROW - 1, "green", 0.34],
  ]);
});

test("the narrowest boxes are still seen, and boxes beside the picture are not drawn", () => {
  assert.deepEqual(drawn([box(1, 0, 0.2), box(2, 5, 3), box(3, 0, 9, 9)], {}, ROW + 1), []);
  assert.deepEqual(drawn([box(1, 0, 0.2), box(2, 5, 3), box(3, 0, 9, 6)]).map((call) => call[3]), [0.7, 3]);
});

test("a name begins within the picture, though its box does not", () => {
  assert.deepEqual(drawn([box(1, -50, 200)]).find(([kind]) => kind === "text")?.slice(1, 3), ["node 1 of many", 7]);
});

test("what a search finds is marked, and all else is faint, as what is around the focus", () => {
  const hit = box(1, 0, 100);
  const calls = drawn([hit, box(2, 100, 100)], { found: new Set([hit]) });
  assert.deepEqual(calls.filter(([kind]) => kind === "fill").map((call) => call.slice(5)), [["green", 0.34], ["blue", 1], ["green", 0.14], ["green", 0.4]]);
  assert.deepEqual(calls.filter(([kind]) => kind === "text").map((call) => call[4]), ["black", "silver"]);
  assert.equal(drawn([hit], { isAround: () => true })[0]?.[6], 0.14);
});

test("joined boxes have no name, no edge and a colour of their own", () => {
  assert.deepEqual(drawn([box(1, 0, 100, 0, 7)]), [["fill", 0, 0, 99, ROW - 1, "gray", 0.25]]);
});

test("a strength is an opacity at which text can be read, and hatching is apart from colour", () => {
  const alpha = (strength: number) => drawn([box(1, 0, 9)], { strength: () => strength })[0]?.[6];
  assert.deepEqual([alpha(0), alpha(1), alpha(9)], [0.1, STRONGEST, STRONGEST]);
  assert.deepEqual(drawn([box(1, 0, 9)], { hatched: () => true })[1], ["hatch", "green"]);
});

test("the chosen box and the one under the pointer are framed", () => {
  const one = box(1, 10, 101, 1);
  const frames = (more: Partial<Picture>) => drawn([], more).map((call) => call.slice(1));
  assert.deepEqual(frames({ chosen: one }), [[11, ROW + 1, 98, ROW - 3, "orange", 2]]);
  assert.deepEqual(frames({ hovered: one }), [[10.5, ROW + 0.5, 99, ROW - 2, "black", 1]]);
  assert.deepEqual(frames({ hovered: box(1, 0, 9, 0, 2) }), []);
});
