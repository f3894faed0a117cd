import assert from "node:assert/strict";
import test from "node:test";
import type { Page } from "../../data/api.ts";
import type { SqlColumn, SqlResult } from "../../data/sql.ts";
import { pointsOf, readChart, writtenChart } from "./charts.ts";
import { numberWidths, pageOf, readable } from "./rows.ts";

function column(name: string, type: string, unit: SqlColumn["unit"]): SqlColumn {
  return { name, type, unit, doc: "", nullable: true, labels: {} };
}

const COLUMNS = [column("name", "text", "text"), column("a,b", "integer", "id"), column("t_ns", "number", "ns")];
const PAGE: Page = {
  view: "sql", options: {}, all: 3, total: 3, from: 0, rows: 3, totals: {}, lacks: [],
  columns: {
    "name": { codes: [0, 1, null], texts: ["mm", "add"] },
    "a,b": { values: [1, 2, 3] },
    "t_ns": { values: [2.123456789, null, 30] },
  },
};
const RESULT: SqlResult = { columns: COLUMNS, page: PAGE, row_count: 3, seconds: 0.1 };

test("a chart in the address names its columns, whatever is in their names", () => {
  const chart = { kind: "line", x: "a,b", y: "t_ns" } as const;
  assert.equal(writtenChart(chart), "line,a%2Cb,t_ns");
  assert.deepEqual(readChart(writtenChart(chart), COLUMNS), chart);
});

test("columns that are not there are replaced", () => {
  assert.deepEqual(readChart("bar", COLUMNS), { kind: "bar", x: "name", y: "a,b" });
  assert.deepEqual(readChart("scatter,gone,name", COLUMNS), { kind: "scatter", x: "a,b", y: "t_ns" });
  assert.equal(readChart(undefined, COLUMNS), null);
  assert.equal(readChart("pie,name,t_ns", COLUMNS), null);
  assert.equal(readChart("bar", COLUMNS.slice(0, 1)), null);
});

test("points are the rows with a value", () => {
  const points = pointsOf(PAGE, { kind: "bar", x: "name", y: "t_ns" });
  assert.deepEqual(points, [{ x: "mm", y: 2.123456789 }, { x: null, y: 30 }]);
});

test("rows of a result are searched and sorted like those of a table", () => {
  const page = pageOf(RESULT, { sort: "-a,b", from: 0, rows: 2 });
  assert.deepEqual([page.all, page.total, page.rows], [3, 3, 2]);
  assert.deepEqual(page.columns["a,b"], { values: [3, 2] });
  assert.equal(pageOf(RESULT, { find: "MM" }).total, 1);
});

test("numbers without a unit are shown with six digits", () => {
  const columns = [column("share", "number", "id")];
  const page = { ...PAGE, rows: 2, columns: { share: { values: [0.123456789, 12345678.9] } } };
  assert.deepEqual(readable({ ...RESULT, columns, page }).page.columns, { share: { values: [0.123457, 12345679] } });
  assert.deepEqual(Object.keys(numberWidths(RESULT)), ["a,b"]);
});
