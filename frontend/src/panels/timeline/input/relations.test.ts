import assert from "node:assert/strict";
import { test } from "node:test";
import type { Cell, Page } from "../../../data/api.ts";
import { flowsOf, launchedWork, linksOf, sliceOfPage } from "./relations.ts";

function page(names: readonly string[], rows: readonly (readonly Cell[])[], options: Page["options"] = {}): Page {
  const columns = Object.fromEntries(names.map((name, at) => [name, { values: rows.map((row) => row[at] ?? null) }]));
  return { view: "", options, all: rows.length, total: rows.length, from: 0, rows: rows.length, columns, totals: {}, lacks: [] };
}

// operator 7 has a backward 30, and calls 8 and 9 below it that launched 20 and 21
const FLOWS: readonly (readonly Cell[])[] = [["flow", "launch", 8, 20], ["flow", "launch", 9, 21], ["flow", "backward", 7, 30], ["slice", "x", 7, 0]];
const flows = (options: Page["options"]) => flowsOf(page(["kind", "name", "id", "to"], FLOWS, options), 7).map((flow) => flow.to);

test("an operator with a backward keeps the arrows to all its kernels", () => {
  assert.deepEqual(flows({ selected: 7 }), [20, 21, 30]);
});

test("of a page that holds the arrows of others those are taken that touch the slice", () => {
  assert.deepEqual(flows({}), [30]);
});

test("the device work of a slice is told with its whole number, the longest of it listed", () => {
  const facts = page(["group", "key", "value", "slice", "start", "duration"], [
    ["slice", "name", "aten::mm", 7, 0, 50],
    ["device work", "count", "70", null, null, null],
    ["device work", "busy", "900", null, null, null],
    ["device work", "begin", "100", null, null, null],
    ["device work", "end", "2000", null, null, null],
    ["links", "device work", "gemm", 20, 100, 500],
    ["links", "parent", "nn.Linear", 3, 0, 60],
  ]);
  const work = launchedWork(facts, linksOf(facts));
  assert.deepEqual(work && [work.count, work.busy, work.begin, work.end], [70, 900, 100, 2000]);
  assert.deepEqual(work?.links.map((link) => [link.slice, link.name]), [[20, "gemm"]]);
  const none = page(["group", "key", "value"], [["slice", "name", "x"]]);
  assert.equal(launchedWork(none, []), null);
});

test("a slice is read from its facts; a self time that is not told is unknown", () => {
  const names = ["group", "key", "value", "slice", "track", "row", "start", "duration"];
  const facts: Cell[][] = [["slice", "name", "aten::mm", 7, 2, 3, 100, 50], ["arguments", "category", "no", null, null, null, null, null], ["slice", "category", "cpu_op", null, null, null, null, null]];
  assert.equal(sliceOfPage(page(names, [])), null);
  const slice = { id: 7, name: "aten::mm", category: "cpu_op", track: 2, row: 3, start: 100, end: 150, count: 1 };
  assert.deepEqual(sliceOfPage(page(names, facts)), { ...slice, self: Number.NaN });
  assert.deepEqual(sliceOfPage(page(names, [...facts, ["slice", "self", "20", null, null, null, null, null]])), { ...slice, self: 20 });
  assert.equal(sliceOfPage(page(names, [["slice", "name", "mark", 7, 2, 3, 100, null]]))?.end, 100);
});
