import assert from "node:assert/strict";
import test from "node:test";
import type { Cell } from "../../../data/api.ts";
import type { FullTable } from "../../../parts/data/full-table.ts";
import {
  differenceRows, divisors, mergeRows, overviewRows, renameFiles, rowOf, matchFiles, sortRows, stepsOf, sums,
} from "./merging.ts";

function table(columns: Record<string, Cell[]>): FullTable {
  const rows = Object.values(columns)[0]?.length ?? 0;
  return { options: {}, columns, rows, total: rows, totals: {}, lacks: [] };
}

const a = table({ name: ["mm", "add", "mm", "gone"], time: [60, 10, 20, 5] });
const b = table({ name: ["mm", "add", "new"], time: [40, 10, 8] });

test("two empty tables have nothing in common", () => {
  assert.deepEqual(mergeRows(new Map(), new Map(), "ns"), []);
});

test("rows of one key are added, and what is in one alone is told", () => {
  const rows = mergeRows(sums(a, ["name"], "time", 1), sums(b, ["name"], "time", 1), "ns");
  assert.deepEqual(rows.map((row) => [row.key[0], row.a, row.b, row.difference, row.ratio]), [
    ["mm", 80, 40, -40, 0.5],
    ["add", 10, 10, 0, 1],
    ["gone", 5, null, -5, null],
    ["new", null, 8, 8, null],
  ]);
});

test("recordings of different length compare by the step", () => {
  const rows = mergeRows(sums(a, ["name"], "time", 2), sums(b, ["name"], "time", 1), "ns");
  assert.deepEqual([rows[0]?.a, rows[0]?.b, rows[0]?.difference], [40, 40, 0]);
});

test("a key that differs in its kind differs", () => {
  const one = table({ name: ["1", null], time: [1, 1] });
  const other = table({ name: [1, "null"], time: [1, 1] });
  assert.equal(mergeRows(sums(one, ["name"], "time", 1), sums(other, ["name"], "time", 1), "ns").length, 4);
});

test("there are no multiples of nothing, nor of less", () => {
  assert.deepEqual([rowOf([], 0, 5, "ns").ratio, rowOf([], -1, 5, "ns").ratio, rowOf([], 4, 2, "ns").ratio, rowOf([], 0.5, 0.25, "ns").ratio], [null, null, 0.5, 0.5]);
});

test("the largest differences stand first, whichever way they go; the unknown last", () => {
  const rows = [rowOf(["x"], 1, 2, "ns"), rowOf(["y"], 9, 0, "ns"), rowOf(["z"], null, 3, "ns")];
  assert.deepEqual(sortRows(rows, "difference", true).map((row) => row.key[0]), ["y", "z", "x"]);
  assert.deepEqual(sortRows(rows, "a", true).map((row) => row.key[0]), ["y", "x", "z"]);
  assert.deepEqual(sortRows(rows, "a", false).map((row) => row.key[0]), ["x", "y", "z"]);
  assert.deepEqual(sortRows(rows, "key", true).map((row) => row.key[0]), ["z", "y", "x"]);
});

test("a program that ran from another folder is the same program", () => {
  const same = matchFiles(["/a/train.py", "/a/x/util.py", "/a/y/util.py", "torch/nn.py"], ["/b/train.py", "/b/util.py", "torch/nn.py"]);
  assert.deepEqual([...same], [["/b/train.py", "/a/train.py"]]);
  assert.deepEqual(renameFiles(table({ file: ["/b/train.py", null] }), same).columns["file"], ["/a/train.py", null]);
});

test("only steps that count divide the sums of what counts", () => {
  const steps = table({ counted: [false, true, true, true], source: ["profiler", "profiler", "profiler", "profiler"] });
  assert.deepEqual(stepsOf(steps), { found: 4, counted: 3 });
});

test("a recording without steps has none, though it has a window", () => {
  assert.deepEqual(stepsOf(table({ counted: [true], source: ["window"] })), { found: 0, counted: 0 });
});

test("a row of differences has them as they were told", () => {
  const told = table({
    what: ["gemm", "new"], before: [10, 0], after: [5.5, 2], difference: [-4.5, 2], change: [-0.45, null],
    low: [-5, null], high: [-4, null], verdict: ["faster", "new"], count_before: [3, 0],
  });
  assert.deepEqual(differenceRows(told, ["what", "count_before"]), [
    { key: ["gemm", 3], a: 10, b: 5.5, difference: -4.5, ratio: 0.55, unit: "ns", told: { change: -0.45, verdict: "faster", low: -5, high: -4 } },
    { key: ["new", 0], a: 0, b: 2, difference: 2, ratio: null, unit: "ns", told: { change: null, verdict: "new", low: null, high: null } },
  ]);
});

test("figures of the overview keep their units, texts are left out", () => {
  const of = (busy: number) => table({
    section: ["steps", "device"], metric: ["busy", "name"], device: [null, 0], value: [busy, null], unit: ["ratio", "text"],
  });
  assert.deepEqual(overviewRows(of(0.5), of(0.75)), [rowOf(["busy", "steps", null], 0.5, 0.75, "ratio")]);
});

test("sums are divided by the steps of each where both have some", () => {
  const [three, none] = [{ found: 4, counted: 3 }, { found: 0, counted: 0 }];
  assert.deepEqual(divisors(true, [three, three], true), [3, 3]);
  assert.deepEqual(divisors(true, [three, three], false), [4, 4]);
  assert.equal(divisors(false, [three, three], true), null);
  assert.equal(divisors(true, [three, none], true), null);
});

test("what takes no time on either side is left out, what takes some on one is not", () => {
  const of = (value: number) => new Map([["mm", { key: ["mm"], value }]]);
  assert.deepEqual(mergeRows(of(0), of(0), "ns"), []);
  assert.equal(mergeRows(of(1), of(0), "ns")[0]?.ratio, 0);
  assert.equal(mergeRows(of(0), of(1), "ns")[0]?.b, 1);
});
