import assert from "node:assert/strict";
import test from "node:test";
import type { Page, Values } from "../../../data/api.ts";
import { columnNumbers, columnTexts, gathered } from "./columns.ts";
import { samplesOf } from "./tiles.ts";

function page(rows: number, columns: Record<string, Values>): Page {
  return { view: "", options: {}, all: rows, total: rows, from: 0, rows, columns, totals: {}, lacks: [] };
}

test("what is unknown is no number and no text", () => {
  const one = page(3, { time: { values: [7, null, "x"] }, name: { values: ["a", null, "a"] } });
  assert.deepEqual([...columnNumbers(one, "time")], [7, Number.NaN, Number.NaN]);
  assert.deepEqual([...columnNumbers(one, "other")], [Number.NaN, Number.NaN, Number.NaN]);
  assert.deepEqual(columnTexts(one, "name"), { texts: ["", "a"], codes: Int32Array.of(1, 0, 1) });
  assert.deepEqual(columnTexts(one, "other"), { texts: [""], codes: new Int32Array(3) });
});

test("a text that a column has twice is one", () => {
  const one = page(4, { name: { codes: [0, 2, null, 1], texts: ["a", "b", "a"] } });
  assert.deepEqual(columnTexts(one, "name"), { texts: ["", "a", "b"], codes: Int32Array.of(1, 1, 0, 2) });
});

test("numbers of some rows keep their order", () => {
  assert.deepEqual(gathered(Float64Array.of(5, 6, 7), [2, 0]), Float64Array.of(7, 5));
});

test("samples of a counter on several pages are one curve", () => {
  const told = page(2, {
    kind: { codes: [0, 1], texts: ["counter", "counter"] }, name: { codes: [0, 1], texts: ["busy", "busy"] },
    start: { values: [0, 10] }, duration: { values: [10, 10] }, value: { values: [1, 2] },
  });
  assert.deepEqual([...(samplesOf(told, null).get("busy")?.mean ?? [])], [1, 2]);
});
