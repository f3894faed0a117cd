import assert from "node:assert/strict";
import test from "node:test";
import type { Cell } from "../../api.ts";
import type { Whole } from "../../parts/whole.ts";
import { signed, signedShare, stepWords } from "./wording.ts";

function steps(row: Record<string, Cell>): Whole {
  const of: Record<string, Cell> = {
    time: "device step time", before: 200e6, after: 150e6, difference: -50e6, change: -0.25,
    low: -60e6, high: -40e6, chance: 0.01, verdict: "faster", steps_before: 5, steps_after: 4, ...row,
  };
  const columns = Object.fromEntries(Object.entries(of).map(([name, value]) => [name, [value]]));
  return { options: {}, columns, rows: 1, total: 1, totals: {}, lacks: [] };
}

test("a difference has its sign, and none is no minus", () => {
  assert.deepEqual([1.5e6, -2e3, 0].map((value) => signed(value)), ["+1.500 ms", "−2.000 us", "0 ns"]);
  assert.equal(signed(-3, "count"), "−3");
  assert.deepEqual([0.5, -0.123, 0, null].map(signedShare), ["+50.0 %", "−12.3 %", "0.0 %", "-"]);
});

test("a step that is faster is said in the words of the command line", () => {
  assert.deepEqual(stepWords(steps({}), 0), {
    title: "Device step time", before: "200.000 ms", after: "150.000 ms", verdict: "faster",
    said: "50.000 ms (25.0 %) faster", surely: "40.000 ms to 60.000 ms, 95 %; 5 and 4 steps",
  });
});

test("an interval of what is slower is not turned round", () => {
  const slower = stepWords(steps({ difference: 50e6, low: 40e6, high: 60e6, change: null, verdict: "slower" }), 0);
  assert.deepEqual([slower.said, slower.surely], ["50.000 ms slower", "40.000 ms to 60.000 ms, 95 %; 5 and 4 steps"]);
});

test("what may be chance is no difference, and too few steps tell nothing", () => {
  assert.equal(stepWords(steps({ verdict: null }), 0).said, "no difference that is more than chance");
  const few = stepWords(steps({ verdict: null, chance: null, low: null, high: null, steps_before: 1 }), 0);
  assert.deepEqual([few.said, few.surely], ["too few steps to tell what varies", "1 and 4 steps"]);
});
