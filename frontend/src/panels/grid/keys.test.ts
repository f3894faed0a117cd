import assert from "node:assert/strict";
import { test } from "node:test";
import { moved } from "./keys.ts";

const SIZE = { rows: 100, columns: 5, page: 20 };

test("arrows lead to the neighbours, up into the head, and not beyond the ends", () => {
  assert.deepEqual(moved("ArrowDown", { row: 3, column: 2 }, SIZE, false), { row: 4, column: 2 });
  assert.deepEqual(moved("ArrowUp", { row: 0, column: 2 }, SIZE, false), { row: -1, column: 2 });
  assert.deepEqual(moved("ArrowUp", { row: -1, column: 2 }, SIZE, false), { row: -1, column: 2 });
  assert.deepEqual(moved("ArrowDown", { row: 99, column: 2 }, SIZE, false), { row: 99, column: 2 });
  assert.deepEqual(moved("ArrowRight", { row: 3, column: 4 }, SIZE, false), { row: 3, column: 4 });
  assert.deepEqual(moved("ArrowLeft", { row: 3, column: 0 }, SIZE, false), { row: 3, column: 0 });
});

test("pages stop at the first row, not in the head", () => {
  assert.deepEqual(moved("PageUp", { row: 3, column: 0 }, SIZE, false), { row: 0, column: 0 });
  assert.deepEqual(moved("PageDown", { row: 90, column: 0 }, SIZE, false), { row: 99, column: 0 });
});

test("ends of a row, and with Control those of the table", () => {
  assert.deepEqual(moved("End", { row: 3, column: 1 }, SIZE, false), { row: 3, column: 4 });
  assert.deepEqual(moved("Home", { row: 3, column: 1 }, SIZE, false), { row: 3, column: 0 });
  assert.deepEqual(moved("End", { row: 3, column: 1 }, SIZE, true), { row: 99, column: 1 });
  assert.deepEqual(moved("Home", { row: 3, column: 1 }, SIZE, true), { row: 0, column: 1 });
});

test("other keys lead nowhere, and a table without rows stays in its head", () => {
  assert.equal(moved("x", { row: 3, column: 1 }, SIZE, false), null);
  assert.deepEqual(moved("ArrowDown", { row: -1, column: 0 }, { ...SIZE, rows: 0 }, false), { row: -1, column: 0 });
});
