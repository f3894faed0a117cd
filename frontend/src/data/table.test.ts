import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { DataError } from "./api.ts";
import type { Cell, Query, Unit, Values } from "./api.ts";
import { runQuery, gatherColumn, totals, valueAt } from "./table.ts";
import type { Table } from "./table.ts";

interface Golden {
  columns: { name: string; unit: Unit; values: Cell[] }[];
  summed: string[];
  cases: { title: string; query: Query; rows: number[]; total: number; totals: Record<string, number | null> }[];
  refused: { title: string; query: Query }[];
}

const FILE = new URL("../../../tests/golden/page_queries.json", import.meta.url);
const golden = JSON.parse(readFileSync(FILE, "utf8")) as Golden;

/** The column as numbers of its texts. */
function coded(values: Cell[]): Values {
  const texts = [...new Set(values.filter((value) => typeof value === "string"))];
  return { codes: values.map((value) => (value === null ? null : texts.indexOf(String(value)))), texts };
}

function table(write: (values: Cell[]) => Values): Table {
  return {
    columns: golden.columns,
    rows: golden.columns[0]?.values.length ?? 0,
    values: Object.fromEntries(
      golden.columns.map(({ name, unit, values }) => [
        name,
        unit === "name" || unit === "text" ? write(values) : { values },
      ]),
    ),
  };
}

const TABLES = { plain: table((values) => ({ values })), coded: table(coded) };

for (const [form, known] of Object.entries(TABLES)) {
  describe(`a ${form} table answers as the server does`, () => {
    for (const { title, query, rows, total, totals: sums } of golden.cases) {
      test(title, () => {
        const found = runQuery(known, query);
        assert.deepEqual([...found.window], rows);
        assert.equal(found.rows.length, total);
        assert.deepEqual(totals(known, found.rows, golden.summed), sums);
      });
    }
    for (const { title, query } of golden.refused) {
      test(title, () => assert.throws(() => runQuery(known, query), DataError));
    }
  });
}

test("an empty table has no rows and no totals", () => {
  const empty: Table = { columns: [{ name: "time", unit: "ns" }], values: { time: { values: [] } }, rows: 0 };
  const found = runQuery(empty, { sort: "-time", find: "x", where: [{ column: "time", op: "from", value: "1" }] });
  assert.deepEqual([...found.rows], []);
  assert.deepEqual(totals(empty, found.rows, ["time"]), { time: null });
});

test("rows are gathered with the texts they need alone", () => {
  const values: Values = { codes: [2, null, 0, 2], texts: ["a", "b", "c"] };
  const some = gatherColumn(values, Uint32Array.from([3, 1, 0]));
  assert.deepEqual(some, { codes: [0, null, 0], texts: ["c"] });
  assert.deepEqual([0, 1, 2].map((row) => valueAt(some, row)), ["c", null, "c"]);
  assert.deepEqual(gatherColumn({ values: [1, null, 3] }, Uint32Array.from([2, 1])), { values: [3, null] });
});

test("texts are in the order of their characters, beyond 16 bits too", () => {
  const texts = ["\u{1f600}", "\uff5e", "a", "b\u{1f600}", "b\uff5e"];
  const known: Table = { columns: [{ name: "name", unit: "name" }], values: { name: { values: texts } }, rows: 5 };
  assert.deepEqual([...runQuery(known, { sort: "name" }).rows].map((row) => texts[row]),
    ["a", "b\uff5e", "b\u{1f600}", "\uff5e", "\u{1f600}"]);
});
