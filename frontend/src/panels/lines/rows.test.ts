import assert from "node:assert/strict";
import test from "node:test";
import type { Cost } from "./costs.ts";
import { rowsOf } from "./rows.ts";

const cost = (line: number | null): Cost => ({
  file: "a.py", line, function: null, how: ["stack"], device: 0, host: 1, waits: 0, totalDevice: null, totalHost: null,
  backwardDevice: 0, backwardHost: 0, recomputeDevice: 0, recomputeHost: 0, python: 0, operators: 0, memory: 0,
});
const part = (from: number, lines: string[]) => ({ file: "a.py", from, lines, count: 9 });
const brief = (rows: ReturnType<typeof rowsOf>) =>
  rows.map((row) => [row.line, row.tokens?.map((token) => token.text).join("") ?? null, row.cost !== undefined]);

test("a file that is not at hand has its lines with a cost, in order", () => {
  assert.deepEqual(brief(rowsOf([cost(7), cost(null), cost(2)], [], false)), [
    [2, null, true], [7, null, true], [null, null, true],
  ]);
  assert.deepEqual(rowsOf([], [], false), []);
});

test("lines have their costs beside them", () => {
  const rows = rowsOf([cost(2)], [part(1, ["x = 1", "y = 2"])], false);
  assert.deepEqual(brief(rows), [[1, "x = 1", false], [2, "y = 2", true]]);
  assert.deepEqual(brief(rowsOf([cost(2)], [part(1, ["x = 1", "y = 2"])], true)), [[2, "y = 2", true]]);
});

test("what a report leaves out is a gap, and what is beyond the file is told", () => {
  const rows = rowsOf([cost(12)], [part(3, ["a"]), part(6, ["b"])], false);
  assert.deepEqual(rows.map((row) => row.line), [null, 3, null, 6, null, 12]);
  assert.deepEqual(brief(rows).at(-1), [12, null, true]);
});
