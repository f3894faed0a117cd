import assert from "node:assert/strict";
import test from "node:test";
import type { Cell } from "../../data/api.ts";
import type { FullTable } from "../../parts/data/full-table.ts";
import { causesOf, loopsOf, namedShares, onlyShare, partsOf } from "./parts.ts";

function table(names: string[], rows: Cell[][]): FullTable {
  const columns = Object.fromEntries(names.map((name, at) => [name, rows.map((row) => row[at] ?? null)]));
  return { options: {}, columns, rows: rows.length, total: rows.length, totals: {}, lacks: [] };
}

const RUN = ["part", "what", "time", "share", "count", "file", "line", "function"];
const LABELS = { imports: { text: "importing", doc: "" } };
const parts = partsOf(table(RUN, [
  ["imports", "torch", 600, 0.6, 1, "/a.py", 1, "<module>"],
  ["steps", "training", 250, 0.25, 40, null, null, null],
  ["imports", "numpy", 100, 0.1, 1, "/a.py", 2, "<module>"],
  ["steps", "training", 5, 0.005, 0, "/a.py", 9, "main"],
  ["unheard_of", null, 45, 0.045, 1, null, null, null],
]), LABELS, new Map([["training", { file: "/a.py", line: 8, function: null }]]));

test("nothing spent, no parts", () => {
  assert.deepEqual(partsOf(table(RUN, []), LABELS), []);
});

test("rows of one part are put together, the longest part first", () => {
  assert.deepEqual(parts.map((part) => [part.part, part.time, part.count]), [
    ["imports", 700, 2], ["steps", 255, 40], ["unheard_of", 45, 1],
  ]);
  assert.equal(parts[0]?.share?.toFixed(3), "0.700");
  assert.deepEqual([parts[0]?.label, parts[2]?.label], ["importing", "unheard of"]);
});

test("steps have the line of their loop where none was read", () => {
  assert.deepEqual(parts[1]?.shares.map((share) => share.place?.line), [8, 9]);
});

test("what a part is made of is listed where it is of several", () => {
  const [imports, steps, other] = parts as [(typeof parts)[number], (typeof parts)[number], (typeof parts)[number]];
  assert.deepEqual(namedShares(imports, 1000).map((share) => share.what), ["torch", "numpy"]);
  assert.equal(onlyShare(imports), null);
  assert.deepEqual(namedShares(steps, 1000).length, 1); // a share below 1 % of the run is not listed
  assert.deepEqual(namedShares(other, 1000), []);
});

test("a kind of steps without a known line has no loop", () => {
  const kinds = table(["kind", "file", "line"], [["training", "/a.py", 8], ["token", null, null]]);
  assert.deepEqual([...loopsOf(kinds).keys()], ["training"]);
});

test("slow steps by cause and line, the costliest first", () => {
  const slow = table(["cause", "excess", "file", "line"], [
    ["program", 50, "/a.py", 3], ["data_wait", 40, null, null], ["program", 30, "/a.py", 3], [null, 1, null, null],
  ]);
  assert.deepEqual(causesOf(slow).map((one) => [one.cause, one.count, one.excess, one.place?.line]), [
    ["program", 2, 80, 3], ["data_wait", 1, 40, undefined], ["unknown", 1, 1, undefined],
  ]);
});

test("the shares of a part stand in order of time, and one that is nearly all speaks for it", () => {
  const rows: Cell[][] = [["imports", "numpy", 1, 0.1, 1, null, null, null], ["imports", "torch", 999, 0.9, 1, null, null, null], ["other", "training", 5, 0, 0, null, null, null]];
  const [imports, other] = partsOf(table(RUN, rows), LABELS, new Map([["training", { file: "/a.py", line: 8, function: null }]]));
  assert.deepEqual(imports?.shares.map((share) => share.what), ["torch", "numpy"]);
  assert.equal(imports && onlyShare(imports)?.what, "torch");
  assert.equal(other?.shares[0]?.place, null); // it is of no loop: it only has the name of one
});
