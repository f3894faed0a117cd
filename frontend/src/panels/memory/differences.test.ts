import assert from "node:assert/strict";
import test from "node:test";
import type { FullTable } from "../../parts/data/full-table.ts";
import { differencesOf, sideOf, versusOf, wordOfInstant } from "./differences.ts";

function table(rows: [file: string | null, bytes: number][]): FullTable {
  const columns = { file: rows.map(([file]) => file), line: rows.map(() => 1), bytes: rows.map(([, bytes]) => bytes) };
  return { options: {}, columns, rows: rows.length, total: rows.length, totals: {}, lacks: [] };
}

test("groups of either side are there, the largest change first", () => {
  const found = differencesOf(table([["a.py", 10], ["b.py", 7], [null, 3]]), table([["a.py", 12], ["c.py", 9], [null, 3]]));
  assert.deepEqual(found.map(({ before, after, change }) => [before, after, change]), [[0, 9, 9], [7, 0, -7], [10, 12, 2], [3, 3, 0]]);
});

test("what is compared with comes from the address", () => {
  assert.deepEqual(versusOf("peak"), { kind: "peak" });
  assert.deepEqual(versusOf("trace:a:b"), { kind: "trace", id: "a:b", time: null });
  assert.deepEqual(versusOf("17"), { kind: "instant", time: 17 });
  assert.deepEqual([versusOf(undefined), versusOf(""), versusOf("often")], [null, null, null]);
});

test("an instant of another trace is asked of that trace", () => {
  const versus = versusOf(wordOfInstant("a:b@c", 12.4));
  assert.deepEqual(versus, { kind: "trace", id: "a:b@c", time: 12 });
  assert.deepEqual(versus && sideOf(versus, "own"), { trace: "a:b@c", options: { at: 12 } });
  assert.deepEqual(sideOf({ kind: "peak" }, "own"), { trace: "own", options: {} });
  assert.deepEqual(sideOf({ kind: "instant", time: 5 }, "own"), { trace: "own", options: { at: 5 } });
});
