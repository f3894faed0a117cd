import assert from "node:assert/strict";
import { test } from "node:test";
import type { Cell, Column, Page } from "../../../data/api.ts";
import { barOf, columnsInView, labelOf, columnsWithValues, mainColumns, placeColumns, widthOf } from "./columns.ts";

const column = (name: string, unit: Column["unit"]): Column => ({ name, unit, doc: "", nullable: true, labels: {} });

function page(columns: Record<string, Cell[]>): Page {
  const rows = Object.values(columns)[0]?.length ?? 0;
  return {
    view: "", options: {}, all: rows, total: rows, from: 0, rows, totals: {}, lacks: [],
    columns: Object.fromEntries(Object.entries(columns).map(([name, values]) => [name, { values }])),
  };
}

test("names become headings", () => {
  assert.equal(labelOf("self_cpu_time_total"), "Self CPU time total");
  assert.equal(labelOf("p95"), "P95");
  assert.equal(labelOf("flops"), "FLOPs");
});

const COLUMNS = [
  column("name", "name"), column("time", "ns"), column("zero", "ns"), column("none", "text"),
  column("id", "id"), column("line", "id"), column("used", "flag"), column("start", "instant"),
];
const PAGE = page({
  name: ["a", "b"], time: [0, 5], zero: [0, null], none: [null, null], id: [1, 2], line: [0, 7],
  used: [false, false], start: [0, 0],
});

test("columns without a word to say are left out, but not what was asked for", () => {
  assert.deepEqual(columnsWithValues(COLUMNS, PAGE), ["name", "time", "line", "used", "start"]);
  assert.deepEqual(columnsWithValues(COLUMNS, PAGE, ["zero", "id"]), ["name", "time", "zero", "id", "line", "used", "start"]);
});

test("of many columns the first eight are shown, and what was asked for", () => {
  const many = Array.from({ length: 12 }, (_, at) => column(`time_${at}`, "ns"));
  const whole = page(Object.fromEntries(many.map(({ name }) => [name, [1]])));
  assert.deepEqual(mainColumns(many, whole, ["time_10"]), [...many.slice(0, 8).map(({ name }) => name), "time_10"]);
  assert.equal(mainColumns(many.slice(0, 10), whole).length, 10);
});

test("an empty table keeps its columns", () => {
  assert.deepEqual(columnsWithValues(COLUMNS, page({ name: [] })).length, COLUMNS.length - 1);
  assert.deepEqual(columnsWithValues(COLUMNS, null).length, COLUMNS.length - 1);
});

test("texts are as wide as they need, within bounds; widths set by hand hold", () => {
  const short = widthOf(column("file", "text"), page({ file: ["a.py"] }), false);
  const long = widthOf(column("file", "text"), page({ file: ["a".repeat(4000)] }), false);
  assert.ok(short < 100 && long === 280, `${short} ${long}`);
  const name = (room: number) => widthOf(column("name", "name"), page({ name: ["a".repeat(4000)] }), true, room);
  assert.deepEqual([1440, 400].map(name), [440, 160]);
  const [first, second] = placeColumns(COLUMNS, ["time", "name"], { name: 300 }, PAGE);
  assert.equal(second?.left, first?.width);
  assert.equal(second?.width, 300);
});

test("names take the room that the other columns leave, as far as they need it", () => {
  const long = page({ name: ["a".repeat(100)], time: [1] });
  const widths = (room?: number, chosen = {}) => placeColumns(COLUMNS, ["name", "time"], chosen, long, room).map(({ width }) => width);
  const [narrow = 0, time = 0] = widths(700);
  assert.equal(narrow + time, 700 - 18);
  assert.deepEqual(widths(4000), [742, time]);
  assert.deepEqual(widths(1000, { name: 200 }), [200, time]);
  assert.deepEqual(widths(), [440, time]);
});

test("a window shows the columns in it, beside the first", () => {
  const names = ["name", "time", "zero", "none", "line", "used"];
  const widths = Object.fromEntries(names.map((name) => [name, 100]));
  const columns = placeColumns(COLUMNS, names, widths, null);
  assert.deepEqual(columnsInView(columns, 0, 300), [1, 2]);
  assert.deepEqual(columnsInView(columns, 0, 1000), [1, 5]);
  assert.deepEqual(columnsInView(columns, 150, 300), [2, 4]);
  assert.deepEqual(columnsInView(columns, 300, 300), [4, 5]);
  assert.deepEqual(columnsInView(columns.slice(0, 1), 0, 300), [1, 1]);
});

test("bars are shares of totals", () => {
  const time = column("time", "ns");
  assert.equal(barOf(time, 25, 100), 0.25);
  assert.equal(barOf(time, 250, 100), 1);
  for (const [value, total] of [[0, 100], [-5, 100], [null, 100], [5, null], [5, 0], [5, undefined]] as const) {
    assert.equal(barOf(time, value, total), null);
  }
  assert.equal(barOf(column("share", "ratio"), 0.5, null), 0.5);
  assert.equal(barOf(column("count", "count"), 5, 10), null);
});
