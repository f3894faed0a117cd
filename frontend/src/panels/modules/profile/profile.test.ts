import assert from "node:assert/strict";
import test from "node:test";
import type { FullTable } from "../../../parts/data/full-table.ts";
import { rowsByTime } from "../../../parts/trees/treerows.ts";
import { achievedColour, figureWords, heads, knownShare, passes, profileOf, tableOf } from "./profile.ts";

// Net 100 ─┬─ Linear 60 ── aten::mm 60 ── gemm 60
//          └─ aten::add 40
const table: FullTable = {
  options: {},
  columns: {
    name: ["Net", "Linear", "aten::mm", "void at::gemm<float>(int)", "aten::add", "(outside modules)"],
    kind: ["module", "module", "operator", "kernel", "operator", "outside"],
    id: [0, 1, 2, 3, 4, 5],
    parent: [null, 0, 1, 2, 0, null],
    total_time: [100, 60, 60, 60, 40, 900],
    own_time: [40, 60, 60, 60, 40, 900],
    known_time: [60, 60, 60, 60, 0, 0],
    achieved_share: [0.5, 0.5, 0.5, 0.5, null, null],
    wasted_time: [30, 30, 30, 30, null, null],
    forward_time: [100, 60, 60, 60, 40, 900],
    backward_time: [0, 0, 0, 0, 0, 0],
    recompute_time: [0, 0, 0, 0, 0, 0],
    flops_rate: [null, null, null, null, null, null],
  },
  rows: 6, total: 6, totals: {}, lacks: [],
};
const profile = profileOf(table);
const all = { root: -1, toggled: new Set<number>(), at: -1, hits: null };

test("an empty table has no rows", () => {
  assert.deepEqual(rowsByTime(profileOf({ ...table, columns: {}, rows: 0 }), { ...all, sort: "-total_time" }), []);
});

test("kernels have short names, and shapes that were not recorded say so", () => {
  assert.equal(profile.tree.name[3], "gemm");
  assert.deepEqual([profile.byModule, profile.onDevice], [true, true]);
  const shapes = profileOf({ ...table, columns: { ...table.columns, name: ["[]"], kind: ["shape"], parent: [null] } });
  assert.equal(shapes.tree.name[0], "input shapes not recorded");
});

test("siblings are sorted by time or by what is wasted, the unknown last; heavy rows are open", () => {
  const nodes = (sort: string) => rowsByTime(profile, { ...all, root: 0, sort }).map((row) => row.node);
  assert.deepEqual(nodes("-total_time"), [0, 1, 2, 3, 4]);
  assert.deepEqual(nodes("total_time"), [0, 4, 1, 2, 3]);
  assert.deepEqual(nodes("-wasted_time"), [0, 1, 2, 3, 4]);
  assert.deepEqual(rowsByTime(profile, { ...all, sort: "-wasted_time" }).map(({ node, open }) => [node, open]), [[0, true], [1, false], [4, null], [5, null]]);
});

test("the achieved share has a colour, and the unknown one of its own", () => {
  assert.deepEqual([0, 0.2, 0.59, 0.79, 0.8, 1].map(achievedColour), [
    "achieved-least", "achieved-low", "achieved-half", "achieved-high", "achieved-most", "achieved-most",
  ]);
  assert.equal(achievedColour(null), "idle");
  assert.deepEqual([knownShare(profile, 0), knownShare(profile, 4)], [0.6, 0]);
});

test("columns that say nothing are left out, the known time never", () => {
  assert.deepEqual(heads(profile).map(({ name }) => name), ["total_time", "achieved_share", "wasted_time", "known_time", "own_time"]);
  assert.deepEqual(passes(profile, 0), [100, 0, 0]);
});

test("a row leads to the table that lists it", () => {
  assert.deepEqual(tableOf(profile, 2)?.params, { where: '[{"column":"name","op":"is","value":"aten::mm"}]' });
  assert.equal(tableOf(profile, 3)?.panel, "kernels");
  assert.equal(tableOf(profile, 5), null);
});

test("figures have three digits; nothing is 0 ns", () => {
  assert.deepEqual([182.123e12, 7.14e12, 999.6e9, 12, 46.28e9].map((rate) => figureWords(rate, "flops/s")), ["182 T", "7.14 T", "1000 G", "12", "46.3 G"]);
  assert.deepEqual([figureWords(0, "ns"), figureWords(null, "ns"), figureWords(1_225_310, "ns")], ["0", "-", "1.23 ms"]);
});
