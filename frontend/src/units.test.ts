import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import type { Cell, Unit } from "./data/api.ts";
import { countedText, exactText, exampleOf, millisecondsText, parseQuantity, text } from "./units.ts";

interface Golden {
  value: Cell;
  unit: Unit;
  text: string;
}

const GOLDEN = new URL("../../tests/golden/units.json", import.meta.url);
const CASES = JSON.parse(readFileSync(GOLDEN, "utf8")) as Golden[];

test("every quantity is written as on the command line", () => {
  assert.ok(CASES.length > 100);
  for (const { value, unit, text: expected } of CASES) {
    assert.equal(text(value, unit), expected, `${value} ${unit}`);
  }
});

test("milliseconds are written as the duration that they are", () => {
  assert.deepEqual([0, 0.0031, 12.25, 1234.5].map(millisecondsText), ["0 ms", "3.10 µs", "12.2 ms", "1.23 s"]);
});

test("the tooltip of a number has all its digits, and is none where the text has them", () => {
  const exact: [Cell, Unit, string | undefined][] = [
    [84_012, "ns", "84,012 ns"],
    [640, "ns", undefined],
    [1_234_567_890, "instant", "1,234,567,890 ns"],
    [43_003_412_480, "bytes", "43,003,412,480 bytes"],
    [2_500_000, "count", "2,500,000"],
    [1234, "count", undefined],
    [0.123456, "ratio", "0.123456"],
    [989.4e12, "flops/s", "989,400,000,000,000 FLOP/s"],
    [0, "ns", undefined],
    [null, "ns", undefined],
    ["aten::mm", "name", undefined],
    [7, "id", undefined],
  ];
  for (const [value, unit, expected] of exact) assert.equal(exactText(value, unit), expected, `${value} ${unit}`);
});

test("a written quantity is read with its unit", () => {
  const read: [string, Unit, number | null][] = [
    ["1 ms", "ns", 1e6],
    ["1.5ms", "ns", 1.5e6],
    ["250 µs", "ns", 250e3],
    ["250us", "instant", 250e3],
    ["-2 s", "ns", -2e9],
    ["17", "ns", 17],
    ["1,204", "count", 1204],
    ["2 M", "count", 2e6],
    ["1e3", "count", 1000],
    [".5 MiB", "bytes", 2 ** 19],
    ["2 MB", "bytes", 2e6],
    ["2 M", "bytes", 2 ** 21],
    ["5 %", "ratio", 0.05],
    ["0.3", "ratio", 0.3],
    ["50%", "percent", 50],
    ["989.4 TFLOP/s", "flops/s", 989.4e12],
    ["3 GB/s", "bytes/s", 3e9],
    ["3 GB/s", "gb/s", 3],
    ["7", "id", 7],
    ["", "ns", null],
    ["-", "ns", null],
    ["1 kg", "ns", null],
    ["1 ms", "bytes", null],
    ["ms", "ns", null],
    ["1 2 x", "ns", null],
  ];
  for (const [words, unit, expected] of read) {
    assert.equal(parseQuantity(words, unit), expected, `${words} as ${unit}`);
  }
});

test("what is written can be read back", () => {
  for (const { value, unit, text: written } of CASES) {
    if (typeof value !== "number" || Math.abs(value) < 1 || unit === "flops/byte" || /^[<>]/.test(written)) continue;
    const read = parseQuantity(written, unit);
    assert.ok(read !== null, `${written} as ${unit}`);
    const shown = unit === "instant" ? 501 : 0.51;
    const tolerance = Math.max(shown, Math.abs(value) * 0.006);
    assert.ok(Math.abs(read - value) <= tolerance, `${written} as ${unit} is ${read}`);
  }
});

test("the examples are quantities of their units", () => {
  const units = new Set(CASES.map((known) => known.unit));
  for (const unit of units) assert.notEqual(parseQuantity(exampleOf(unit), unit), null, unit);
});

test("a count has its noun, in the plural unless it is one", () => {
  assert.deepEqual([0, 1, 1200].map((count) => countedText(count, "step")), ["0 steps", "1 step", "1,200 steps"]);
});
