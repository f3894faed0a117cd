import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { contrast, mixColours, parseColour } from "../../../draw/colour.ts";
import { STRONGEST } from "../../../draw/icicle.ts";
import { layout } from "../../../draw/tree.ts";
import type { Cell } from "../../../data/api.ts";
import type { FullTable } from "../../../parts/data/full-table.ts";
import { ALL, colourOf, deltasOf, depthOf, differenceOf, markOf, strengthOf } from "./deltas.ts";

// net 100 → 60 ─┬─ conv 70 → 20 ── slow 50 → 0 (gone)
//               └─ norm 30 → 30
// loss 10 → 45 ─── fused 0 → 40 (new)
// tiny 1 → 1
const ROWS: readonly (readonly Cell[])[] = [
  ["net", 7, null, 0, 100, 60, 0, 10, null],
  ["conv", 3, 7, 1, 70, 20, 20, 20, "slower"],
  ["slow", 4, 3, 2, 50, 0, 50, 0, "gone"],
  ["norm", 9, 7, 1, 30, 30, 30, 30, null],
  ["loss", 1, null, 0, 10, 45, 10, 5, "faster"],
  ["fused", 2, 1, 1, 0, 40, 0, 40, "new"],
  ["tiny", 5, null, 0, 1, 1, 1, 1, null],
];

function tree(rows: readonly (readonly Cell[])[], total = rows.length): FullTable {
  const of = (at: number) => rows.map((row) => row[at] ?? null);
  const sum = (at: number) => of(at).reduce((all: number, one) => all + Number(one), 0);
  const columns = {
    name: of(0), id: of(1), parent: of(2), depth: of(3), total_before: of(4), total_after: of(5),
    total_difference: rows.map((row) => Number(row[5]) - Number(row[4])),
    before: of(6), after: of(7), verdict: of(8),
  };
  const totals = { before: sum(6), after: sum(7), difference: sum(7) - sum(6) };
  return { options: {}, columns, rows: rows.length, total, totals, lacks: [] };
}

const deltas = deltasOf(tree(ROWS), "host");
const node = (name: string) => deltas.changes.name.indexOf(name);

test("one node stands for the step: it has the sums of all rows", () => {
  assert.equal(differenceOf(deltas, ALL), -5);
  assert.equal(deltas.sides.before.whole, 111);
  assert.equal(deltas.sides.after.whole, 106);
  assert.deepEqual(deltas.changes.roots, [ALL]);
});

test("what is within a node takes no more than it, before and after", () => {
  for (const side of ["before", "after"] as const) {
    const { children, total, name } = deltas.sides[side];
    children.forEach((below, at) => {
      const sum = below.reduce((all, child) => all + (total[child] ?? 0), 0);
      assert.ok(sum <= (total[at] ?? 0), name[at] ?? "");
    });
  }
});

test("widths are those of one side: what it lacks is not drawn", () => {
  const drawn = (side: "before" | "after") => new Set(layout(deltas.sides[side], -1, 1110).boxes.map((box) => deltas.changes.name[box.node] ?? ""));
  assert.ok(drawn("before").has("slow") && !drawn("before").has("fused"));
  assert.ok(drawn("after").has("fused") && !drawn("after").has("slow"));
});

test("a node is called by what it has with all within it; new and gone are told", () => {
  const marks = ["net", "conv", "slow", "norm", "loss", "fused"].map((name) => markOf(deltas, node(name)));
  assert.deepEqual(marks, ["faster", "faster", "gone", "same", "slower", "new"]);
  assert.deepEqual(["slow", "fused", "norm"].map((name) => colourOf(deltas, node(name))), ["faster", "slower", "other"]);
});

test("the greatest difference has the full colour, the least none", () => {
  const strengths = ["conv", "slow", "net", "norm"].map((name) => strengthOf(deltas, node(name)));
  assert.equal(strengths[0], 1);
  assert.deepEqual(strengths, strengths.toSorted((a, b) => b - a));
  assert.equal(strengths[3], 0);
});

test("recordings that hardly differ show hardly any colour", () => {
  const alike = deltasOf(tree([["net", 0, null, 0, 1000, 1001, 1000, 1001, null]]), "host");
  assert.ok(strengthOf(alike, 1) < 0.2);
  const same = deltasOf(tree([["net", 0, null, 0, 10, 10, 10, 10, null]]), "host");
  assert.equal(markOf(same, 1), "same");
});

test("a table without rows is a step that takes nothing", () => {
  const none = deltasOf(tree([]), "host");
  assert.deepEqual([none.scale, strengthOf(none, ALL), markOf(none, ALL)], [0, 0, "same"]);
});

test("of a large tree it is known how many nodes are not here", () => {
  assert.equal(deltasOf(tree(ROWS, 1000), "device").left, 993);
  assert.equal(deltas.left, 0);
});

test("the picture is as deep as what can be seen of it", () => {
  assert.equal(depthOf(deltas, "before"), 4);
  assert.equal(depthOf(deltas, "after"), 3);
});

test("text stays readable on the strongest colours of both themes", () => {
  const css = readFileSync(new URL("../../../style.css", import.meta.url), "utf8");
  for (const theme of css.split(":root[data-theme").slice(0, 2)) {
    const of = (name: string) => parseColour(new RegExp(`--${name}: (#[0-9a-f]+);`).exec(theme)?.[1] ?? "");
    for (const hue of ["slower", "faster"]) {
      const fill = mixColours(of("bg"), of(hue), STRONGEST);
      assert.ok(contrast(fill, of("text")) >= 4.5, `${hue}: ${contrast(fill, of("text"))}`);
      assert.ok(contrast(of(hue), of("surface")) >= 4.5, `${hue} as text: ${contrast(of(hue), of("surface"))}`);
    }
  }
});

test("a small difference of a large step has no colour, and the scale is a share of the step", () => {
  const large = deltasOf(tree([["net", 0, null, 0, 1000, 1000, 1000, 1000, null], ["a", 1, 0, 1, 10, 10.1, 10, 10.1, null]]), "host");
  assert.equal(large.scale, 50.505);
  assert.deepEqual([markOf(large, 2), colourOf(large, 2)], ["same", "other"]);
});
