import assert from "node:assert/strict";
import test from "node:test";
import { momentParameters } from "./moment.ts";

test("an instant has room around it, and none before the recording", () => {
  assert.deepEqual(momentParameters(5, 0), { from: "0", to: "20005" });
});

test("a slice has room by its length, and is named", () => {
  assert.deepEqual(momentParameters(1e9, 1e6, 7), { from: "998500000", to: "1002500000", slice: "7" });
});
