import assert from "node:assert/strict";
import { test } from "node:test";
import type { Finding, Saving } from "../../../data/api.ts";
import { findingAddresses, scaleOf, stepOf, whatIf } from "./step.ts";

const SAVING: Saving = {
  estimate_ms: 20, low_ms: 10, high_ms: 25, upper_ms: 30, speedup: 1.25, method: "model",
};
const UNKNOWN: Saving = {
  estimate_ms: null, low_ms: null, high_ms: null, upper_ms: 40, speedup: null, method: "none",
};

test("saving and speed-up tell the step", () => {
  assert.equal(stepOf(20, 1.25), 100);
  assert.equal(stepOf(20, null), null);
  assert.equal(stepOf(0, 1), null);
});

test("the step with a change lies between the ends of its interval", () => {
  assert.deepEqual(whatIf(SAVING, null), { before: 100, after: 80, shortest: 75, longest: 90 });
});

test("a step of which everything is saved has no speed-up: the medians tell it", () => {
  const step = { count: 1, device_ms: null, host_ms: 20, regime: null };
  assert.deepEqual(whatIf({ ...SAVING, speedup: null }, step), { before: 20, after: 0, shortest: 0, longest: 10 });
});

test("what nobody knows is not drawn", () => {
  assert.equal(whatIf(UNKNOWN, { count: 1, device_ms: 50, host_ms: 50, regime: null }), null);
  assert.equal(whatIf({ ...SAVING, speedup: null }, null), null);
});

test("the scale holds the largest bound; no two findings share an address", () => {
  const at = (saving: Saving, line: number | null) =>
    ({ rule: "r", where: { file: "a.py", line }, saving }) as unknown as Finding;
  const findings = [at(SAVING, 3), at(UNKNOWN, 3), at(SAVING, null)];
  assert.equal(scaleOf(findings), 40);
  assert.equal(scaleOf([]), 0);
  assert.deepEqual(findingAddresses(findings), ["r:a.py:3", "r:a.py:3:2", "r:a.py:"]);
});
