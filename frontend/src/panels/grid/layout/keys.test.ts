import assert from "node:assert/strict";
import { test } from "node:test";
import { nextCell } from "./keys.ts";

const SIZE = { rows: 100, columns: 5, page: 20 };

test("arrows lead to the neighbours, up into the head, and not beyond the ends", () => {
  assert.deepEqual(nextCell("ArrowDown", { row: 3, column: 2 }, SIZE, false), { row: 4, column: 2 });
  assert.deepEqual(nextCell("ArrowUp", { row: 0, column: 2 }, SIZE, false), { row: -1, column: 2 });
  assert.deepEqual(nextCell("ArrowUp", { row: -1, column: 2 }, SIZE, false), { row: -1, column: 2 });
  assert.deepEqual(nextCell("ArrowDown", { row: 99, column: 2 }, SIZE, false), { row: 99, column: 2 });
  assert.deepEqual(nextCell("ArrowRight", { row: 3, column: 4 }, SIZE, false), { row: 3, column: 4 });
  assert.deepEqual(nextCell("ArrowLeft", { row: 3, column: 0 }, SIZE, false), { row: 3, column: 0 });
});

test("pages stop at the first row, not in the head", () => {
  assert.deepEqual(nextCell("PageUp", { row: 3, column: 0 }, SIZE, false), { row: 0, column: 0 });
  assert.deepEqual(nextCell("PageDown", { row: 90, column: 0 }, SIZE, false), { row: 99, column: 0 });
});

test("ends of a row, and with Control those of the table", () => {
  assert.deepEqual(nextCell("End", { row: 3, column: 1 }, SIZE, false), { row: 3, column: 4 });
  assert.deepEqual(nextCell("Home", { row: 3, column: 1 }, SIZE, false), { row: 3, column: 0 });
  assert.deepEqual(nextCell("End", { row: 3, column: 1 }, SIZE, true), { row: 99, column: 1 });
  assert.deepEqual(nextCell("Home", { row: 3, column: 1 }, SIZE, true), { row: 0, column: 1 });
});

test("other keys lead nowhere, and a table without rows stays in its head", () => {
  assert.equal(nextCell("x", { row: 3, column: 1 }, SIZE, false), null);
  assert.deepEqual(nextCell("ArrowDown", { row: -1, column: 0 }, { ...SIZE, rows: 0 }, false), { row: -1, column: 0 });
});
