import assert from "node:assert/strict";
import test from "node:test";
import type { Page } from "../../../data/api.ts";
import { comparedRows, difference } from "./statistics.ts";

type Row = readonly [what: string, self: number, count: number];

function page(...rows: Row[]): Page {
  const of = (read: (row: Row, at: number) => number | string | null) => ({ values: rows.map(read) });
  const self = of(([, time]) => time);
  const columns = {
    what: of(([what]) => what), category: of((_, at) => (at === 0 ? null : "cpu_op")),
    self, busy: self, total: self, longest: self, count: of(([, , count]) => count), id: of((_, at) => at),
  };
  return { view: "", options: {}, all: rows.length, total: rows.length, from: 0, rows: rows.length, columns, totals: {}, lacks: [] };
}

const BEFORE = page(["all", 100, 9], ["mm", 60, 2], ["add", 30, 6], ["copy", 10, 1]);
const AFTER = page(["all", 75, 9], ["mm", 61, 2], ["relu", 14, 7]);
const told = (rows: ReturnType<typeof comparedRows>) => rows.map(({ what, amounts }) => [what, ...amounts.map((one) => one?.self ?? null)]);

test("of two traces the rows that differ most stand first, below that of all", () => {
  const rows = comparedRows([BEFORE, AFTER], "self");
  assert.deepEqual(told(rows), [["all", 100, 75], ["add", 30, null], ["relu", null, 14], ["copy", 10, null], ["mm", 60, 61]]);
  assert.deepEqual(rows.map((row) => difference(row, "self")), [-25, -30, 14, -10, 1]);
  assert.deepEqual(comparedRows([BEFORE, AFTER], "count").map(({ what }) => what), ["all", "relu", "add", "copy", "mm"]);
});

test("of more traces those with most stand first", () => {
  assert.deepEqual(told(comparedRows([AFTER, AFTER, BEFORE], "self")).map(([what]) => what), ["all", "mm", "add", "relu", "copy"]);
});

test("a slice that is named as the row of all is not that row", () => {
  const rows = comparedRows([page(["all", 3, 3], ["all", 2, 2]), page()], "self");
  assert.deepEqual(told(rows), [["all", 3, null], ["all", 2, null]]);
});

test("names of which a trace has several are not taken for one another", () => {
  const rows = comparedRows([page(["all", 6, 2], ["thread 1", 5, 1], ["thread 1", 1, 1]), page(["all", 4, 1], ["thread 1", 4, 1])], "self");
  assert.deepEqual(told(rows), [["all", 6, 4], ["thread 1", 5, null], ["thread 1", null, 4], ["thread 1", 1, null]]);
});

test("addresses in names differ from run to run", () => {
  const rows = comparedRows([page(["all", 6, 2], ["add of type object at 0x7f01", 6, 2]), page(["all", 4, 1], ["add of type object at 0x55E", 4, 1])], "self");
  assert.deepEqual(told(rows).slice(1), [["add of type object at 0x7f01", 6, 4]]);
});

test("without slices there is no row", () => {
  assert.deepEqual(comparedRows([page(), page()], "self"), []);
});
