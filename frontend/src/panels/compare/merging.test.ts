import assert from "node:assert/strict";
import test from "node:test";
import type { Cell } from "../../api.ts";
import type { Whole } from "../../parts/whole.ts";
import {
  divisors, median, merged, overviewRows, renamed, rowOf, sameFiles, sorted, stepsOf, sums, verdict,
} from "./merging.ts";

function table(columns: Record<string, Cell[]>): Whole {
  const rows = Object.values(columns)[0]?.length ?? 0;
  return { options: {}, columns, rows, total: rows, totals: {}, lacks: [] };
}

const a = table({ name: ["mm", "add", "mm", "gone"], time: [60, 10, 20, 5] });
const b = table({ name: ["mm", "add", "new"], time: [40, 10, 8] });

test("two empty tables have nothing in common", () => {
  assert.deepEqual(merged(new Map(), new Map(), "ns"), []);
});

test("rows of one key are added, and what is in one alone is told", () => {
  const rows = merged(sums(a, ["name"], "time", 1), sums(b, ["name"], "time", 1), "ns");
  assert.deepEqual(rows.map((row) => [row.key[0], row.a, row.b, row.difference, row.ratio]), [
    ["mm", 80, 40, -40, 0.5],
    ["add", 10, 10, 0, 1],
    ["gone", 5, null, -5, null],
    ["new", null, 8, 8, null],
  ]);
});

test("recordings of different length compare by the step", () => {
  const rows = merged(sums(a, ["name"], "time", 2), sums(b, ["name"], "time", 1), "ns");
  assert.deepEqual([rows[0]?.a, rows[0]?.b, rows[0]?.difference], [40, 40, 0]);
});

test("a key that differs in its kind differs", () => {
  const one = table({ name: ["1", null], time: [1, 1] });
  const other = table({ name: [1, "null"], time: [1, 1] });
  assert.equal(merged(sums(one, ["name"], "time", 1), sums(other, ["name"], "time", 1), "ns").length, 4);
});

test("there are no multiples of nothing, nor of less", () => {
  assert.deepEqual([rowOf([], 0, 5, "ns").ratio, rowOf([], -1, 5, "ns").ratio, rowOf([], 4, 2, "ns").ratio], [null, null, 0.5]);
});

test("the largest differences stand first, whichever way they go; the unknown last", () => {
  const rows = [rowOf(["x"], 1, 2, "ns"), rowOf(["y"], 9, 0, "ns"), rowOf(["z"], null, 3, "ns")];
  assert.deepEqual(sorted(rows, "difference", true).map((row) => row.key[0]), ["y", "z", "x"]);
  assert.deepEqual(sorted(rows, "a", true).map((row) => row.key[0]), ["y", "x", "z"]);
  assert.deepEqual(sorted(rows, "a", false).map((row) => row.key[0]), ["x", "y", "z"]);
  assert.deepEqual(sorted(rows, "key", true).map((row) => row.key[0]), ["z", "y", "x"]);
});

test("a program that ran from another folder is the same program", () => {
  const same = sameFiles(["/a/train.py", "/a/x/util.py", "/a/y/util.py", "torch/nn.py"], ["/b/train.py", "/b/util.py", "torch/nn.py"]);
  assert.deepEqual([...same], [["/b/train.py", "/a/train.py"]]);
  assert.deepEqual(renamed(table({ file: ["/b/train.py", null] }), same).columns["file"], ["/a/train.py", null]);
});

const steps = (times: number[], counted: boolean[]) =>
  table({ time: times, counted, source: times.map(() => "profiler"), kernel: times.map(() => null) });

test("only steps that count make the median", () => {
  const few = steps([900, 10, 30, 20], [false, true, true, true]);
  assert.deepEqual(stepsOf(few), { found: 4, counted: 3 });
  assert.equal(median(few, "time"), 20);
  assert.equal(median(few, "kernel"), null);
  assert.equal(median(steps([10, 30], [true, true]), "time"), 20);
});

test("a recording without steps has none, though it has a window", () => {
  assert.deepEqual(stepsOf(table({ time: [5], counted: [true], source: ["window"] })), { found: 0, counted: 0 });
});

test("a difference within what steps differ by themselves is no difference", () => {
  const one = steps([100, 110, 90], [true, true, true]);
  assert.deepEqual(verdict(one, steps([105, 115, 95], [true, true, true])), { a: 100, b: 105, withinSpread: true });
  assert.equal(verdict(one, steps([150, 151, 149], [true, true, true]))?.withinSpread, false);
  assert.equal(verdict(one, steps([150], [true]))?.withinSpread, null);
  assert.equal(verdict(one, steps([150], [false])), null);
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
