import assert from "node:assert/strict";
import { test } from "node:test";
import type { Finding, Saving } from "../../../data/advice.ts";
import { findingAddresses, scaleOf } from "./step.ts";

const SAVING: Saving = {
  estimate_ms: 20, low_ms: 10, high_ms: 25, upper_ms: 30, speedup: 1.25, method: "model",
};
const UNKNOWN: Saving = {
  estimate_ms: null, low_ms: null, high_ms: null, upper_ms: 40, speedup: null, method: "none",
};

test("the scale holds the largest bound; no two findings share an address", () => {
  const at = (saving: Saving, line: number | null) =>
    ({ rule: "r", where: { file: "a.py", line }, saving }) as unknown as Finding;
  const findings = [at(SAVING, 3), at(UNKNOWN, 3), at(SAVING, null)];
  assert.equal(scaleOf(findings), 40);
  assert.equal(scaleOf([]), 0);
  assert.deepEqual(findingAddresses(findings), ["r:a.py:3", "r:a.py:3:2", "r:a.py:"]);
});
