import assert from "node:assert/strict";
import test from "node:test";
import type { Data, Page } from "../../data/api.ts";
import { cell, number, numbers, texts, loadTable } from "./full-table.ts";

/** A server with one table of so many rows, which hands out at most 7 at a time. */
function served(rows: number): { data: Data; asked: number[] } {
  const asked: number[] = [];
  const page = async (
    _trace: string, view: string, options: object, query: { from?: number; rows?: number },
  ): Promise<Page> => {
    const from = query.from ?? 0;
    const given = Math.max(Math.min(7, query.rows ?? 500, rows - from), 0);
    asked.push(from);
    const numbersOf = Array.from({ length: given }, (_, at) => from + at);
    return {
      view, options: { ...options }, all: rows, total: rows, from, rows: given,
      columns: {
        id: { values: numbersOf.map((id) => (id === 3 ? null : id)) },
        name: { codes: numbersOf.map((id) => (id === 3 ? null : id % 2)), texts: ["even", "odd"] },
      },
      totals: {}, lacks: [],
    };
  };
  return { data: { page } as unknown as Data, asked };
}

test("an empty table is one question", async () => {
  const { data, asked } = served(0);
  const table = await loadTable(data, "t", "v");
  assert.deepEqual([table.rows, table.total, asked], [0, 0, [0]]);
});

test("pages are joined, each in its own codes", async () => {
  const { data, asked } = served(16);
  const table = await loadTable(data, "t", "v");
  assert.deepEqual(asked, [0, 7, 14]);
  assert.equal(table.rows, 16);
  assert.deepEqual(numbers(table, "id").slice(0, 5), [0, 1, 2, 0, 4]);
  assert.deepEqual(texts(table, "name").slice(2, 6), ["even", "", "even", "odd"]);
  assert.equal(cell(table, "name", 3), null);
  assert.equal(number(table, "id", 3), null);
});

test("no more is asked for than is wanted, and the table says so", async () => {
  const { data } = served(100);
  const table = await loadTable(data, "t", "v", {}, {}, 10);
  assert.deepEqual([table.rows, table.total], [10, 100]);
});
