import assert from "node:assert/strict";
import { test } from "node:test";
import type { Cell, Page } from "../../../data/api.ts";
import { momentBeside, momentText, momentsOf, readMoment } from "./moments.ts";

function page(columns: Record<string, Cell[]>): Page {
  const rows = Object.values(columns)[0]?.length ?? 0;
  const values = Object.fromEntries(Object.entries(columns).map(([name, cells]) => [name, { values: cells }]));
  return { view: "", options: {}, all: rows, total: rows, from: 0, rows, columns: values, totals: {}, lacks: [] };
}

const GAPS = momentsOf(
  page({ cause: ["python", "data_loading"], duration: [5_000, 90_000], start: [700_000, 100_000], file: [null, "a.py"], line: [null, 3] }),
  "gap",
  undefined,
);

test("gaps come in order of time, with their cause and line", () => {
  assert.deepEqual(GAPS.map(({ from, to, reason, file, line }) => [from, to, reason, file, line]), [
    [100_000, 190_000, "90.0 µs idle: data loading", "a.py", 3],
    [700_000, 705_000, "5.00 µs idle: python", null, null],
  ]);
});

test("a wait tells what it leaves behind; of steps only slow ones are told", () => {
  const [wait] = momentsOf(page({ wait: [2_000], start: [10], kind: ["device"], idle_after: [7_000], id: [4] }), "wait", undefined);
  assert.deepEqual([wait?.reason, wait?.slice], ["2.00 µs device; the device idles for 7.00 µs after it", 4]);
  const slow = momentsOf(page({ step: [1, 2], start: [0, 10], host_time: [9, 30], excess: [null, 20], longer_in: [null, "cpu"] }), "slow", undefined);
  assert.deepEqual(slow.map(({ from, to, reason }) => [from, to, reason]), [[10, 40, "step 2 takes 20 ns more than the median, most in cpu"]]);
});

test("the way goes from the moment that is seen, else from the middle", () => {
  const [first, last] = GAPS;
  const at = (from: typeof first | null, by: 1 | -1, span = { from: 0, to: 1_000_000 }) => momentBeside(GAPS, from ?? null, span, by);
  assert.equal(at(null, 1), last);
  assert.equal(at(null, -1), first);
  assert.equal(at(first, 1), last);
  assert.equal(at(last, 1), undefined);
  assert.equal(at(last, -1), first);
  assert.equal(at(last, 1, { from: 0, to: 50_000 }), first, "it was left behind");
});

test("a moment stands in the address and comes back", () => {
  assert.deepEqual(readMoment(momentText(GAPS[0]!)), { kind: "gap", from: 100_000 });
  assert.equal(readMoment("gap.<b>"), null);
  assert.equal(readMoment("toString.1"), null);
});
