import assert from "node:assert/strict";
import test from "node:test";
import type { Cell } from "../../data/api.ts";
import type { FullTable } from "../../parts/data/full-table.ts";
import { bandAt, bandsOf, bytesAt, edgesOf, isVague } from "./bands.ts";

type Row = [group: number, holder: string, file: string | null, line: number | null, time: number, bytes: number];

function table(rows: Row[], device = "CUDA"): FullTable {
  const column = (at: number): Cell[] => rows.map((row) => row[at] ?? null);
  return {
    options: {},
    columns: {
      group: column(0), holder: column(1), file: column(2), line: column(3), time: column(4), bytes: column(5),
      category: rows.map(() => null), device_type: rows.map(() => device), device: rows.map(() => 0),
    },
    rows: rows.length, total: rows.length, totals: {}, lacks: [],
  };
}

const bands = bandsOf(table([
  [0, "group", "/a/net.py", 12, 10, 100],
  [0, "group", "/a/net.py", 12, 30, 0],
  [1, "group", null, null, 20, 50],
  [2, "others", null, null, 20, 5],
  [3, "before the recording", null, null, 10, 7],
]), "line").get("CUDA:0") ?? [];

test("nothing recorded, no bands", () => {
  assert.equal(bandsOf(table([]), "line").size, 0);
  assert.deepEqual(edgesOf([]), { times: [], upper: [] });
});

test("what was there before is at the bottom, the others on top", () => {
  assert.deepEqual(bands.map((band) => band.label), ["before the recording", "net.py:12", "unknown line", "others"]);
});

test("the upper edge is the sum of all bands", () => {
  assert.deepEqual(edgesOf(bands), {
    times: [10, 20, 30],
    upper: [[7, 7, 7], [107, 107, 7], [107, 157, 57], [107, 162, 62]],
  });
});

test("a point lies in the band that holds it", () => {
  assert.equal(bandAt(bands, 25, 50)?.label, "net.py:12");
  assert.equal(bandAt(bands, 35, 50)?.label, "unknown line");
  assert.equal(bandAt(bands, 25, 200), null);
  assert.equal(bytesAt(bands[1] as (typeof bands)[number], 5), 0);
});

test("bands that name less than half are vague", () => {
  assert.equal(isVague(bands, 25), false);
  assert.equal(isVague(bands, 35), true);
});

test("a label has one colour on all devices", () => {
  const two = table([[0, "group", "x.py", 1, 0, 1], [1, "group", "y.py", 1, 0, 1]]);
  const other = table([[0, "group", "y.py", 1, 0, 1]], "CPU");
  const both = { ...two, rows: 3, columns: Object.fromEntries(Object.entries(two.columns).map(([name, cells]) => [name, [...cells, ...(other.columns[name] ?? [])]])) };
  const found = bandsOf(both, "line");
  assert.equal(found.get("CPU:0")?.[0]?.colour, found.get("CUDA:0")?.[1]?.colour);
  assert.notEqual(found.get("CUDA:0")?.[0]?.colour, found.get("CUDA:0")?.[1]?.colour);
});
