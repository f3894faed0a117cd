import assert from "node:assert/strict";
import test from "node:test";
import { signed, signedShare } from "./signed.ts";

test("a difference has its sign, and none is no minus", () => {
  assert.deepEqual([1.5e6, -2e3, 0].map((value) => signed(value)), ["+1.50 ms", "−2.00 µs", "0 ms"]);
  assert.deepEqual([signed(-3, "count"), signed(1, "count")], ["−3", "+1"]);
  assert.deepEqual([0.5, -0.123, 0, null].map(signedShare), ["+50.0 %", "−12.3 %", "0.0 %", "-"]);
  assert.deepEqual([9.5, 10, 161.876].map(signedShare), ["+950.0 %", "+10 times", "+162 times"]);
});
