import assert from "node:assert/strict";
import test from "node:test";
import type { FullTable } from "../../parts/data/full-table.ts";
import { chosenName, nameOfLine, nameRows, sortOf, sortedNames } from "./names.ts";

const table: FullTable = {
  options: {},
  columns: {
    name: ["main", "aten::mm", "gemm", "aten::mm", "(other)"],
    kind: ["frame", "operator", "kernel", "annotation", "other"],
    self_time: [1, 2, 9, 0, 3],
    total_time: [12, 11, 9, 5, 3],
    share: [0.8, 0.7, 0.6, 0.3, 0.2],
  },
  rows: 5, total: 5, totals: {}, lacks: [],
};
const rows = nameRows(table);
const order = (word: string | undefined, find = "") => sortedNames(rows, word, find).map(({ name, kind }) => `${kind} ${name}`);

test("what is merged is no name, and the self times stand first", () => {
  assert.deepEqual(order(undefined), ["kernel gemm", "operator aten::mm", "frame main", "annotation aten::mm"]);
});

test("any column sorts both ways, and a search keeps what has the text", () => {
  assert.deepEqual(order("-total", "::MM"), ["operator aten::mm", "annotation aten::mm"]);
  assert.deepEqual(order("name"), ["operator aten::mm", "annotation aten::mm", "kernel gemm", "frame main"]);
  assert.deepEqual(order("share")[0], "annotation aten::mm");
  assert.deepEqual(sortOf("-nonsense"), { column: "self", descending: true });
});

test("a name is chosen with its kind, if the address has one", () => {
  assert.equal(chosenName(rows, "aten::mm", "annotation"), rows[3]);
  assert.equal(chosenName(rows, "aten::mm", undefined), rows[1]);
  assert.equal(chosenName(rows, "aten::mm", "kernel"), undefined);
  assert.equal(chosenName(rows, undefined, undefined), undefined);
});

test("a line has the frame of the function that contains it", () => {
  const frames = nameRows({
    ...table,
    columns: {
      ...table.columns,
      name: ["a.py(3): f", "a.py(9): g", "b.py(4): f", "a.py(20): f", "aten::mm"],
      file: ["a.py", "a.py", "b.py", "a.py", null],
      line: [3, 9, 4, 20, null],
    },
  });
  const at = (line: number, name?: string) => nameOfLine(frames, { file: "a.py", line, function: name })?.name;
  assert.deepEqual([at(12), at(12, "f"), at(30, "f"), at(2), at(12, "h")], ["a.py(9): g", "a.py(3): f", "a.py(20): f", undefined, undefined]);
});
