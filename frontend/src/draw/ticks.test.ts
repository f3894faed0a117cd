import assert from "node:assert/strict";
import { test } from "node:test";
import { stepFor, ticks, timeText } from "./ticks.ts";

test("steps are round and leave room", () => {
  assert.equal(stepFor({ from: 0, to: 1000 }, 1000, 96), 100);
  assert.equal(stepFor({ from: 0, to: 1000 }, 1000, 101), 200);
  assert.equal(stepFor({ from: 0, to: 1000 }, 1000, 201), 500);
  assert.equal(stepFor({ from: 0, to: 1 }, 1000, 96), 1);
});

test("marks are multiples of the step within the stretch", () => {
  const found = ticks({ from: 150, to: 1050 }, 900, 300);
  assert.equal(found.step, 500);
  assert.deepEqual(found.marks, [{ time: 500, text: "500 ns" }, { time: 1000, text: "1.0 µs" }]);
  assert.equal(found.base, "");
});

test("negative times have marks, too", () => {
  assert.deepEqual(ticks({ from: -1000, to: 0 }, 200, 100).marks.map((mark) => mark.text), ["-1.0 µs", "-500 ns", "0"]);
});

test("far from the origin marks tell what is beyond a base", () => {
  const found = ticks({ from: 36_123_456_789, to: 36_123_457_789 }, 1000, 96);
  assert.equal(found.base, "36.123 s");
  assert.equal(found.marks[0]?.text, "+456.8 µs");
});

test("a time has as many decimals as tell it from the next mark", () => {
  assert.equal(timeText(1_500_000, 100_000), "1.5 ms");
  assert.equal(timeText(2_000_000_000, 1_000_000_000), "2 s");
  assert.equal(timeText(2_000_000_000, 1_000_000), "2.000 s");
});
