import assert from "node:assert/strict";
import test from "node:test";
import { timelineLinkParameters } from "./timeline-link.ts";

test("an instant has room around it, and none before the recording", () => {
  assert.deepEqual(timelineLinkParameters(5, 0), { from: "0", to: "20005" });
});

test("a slice has room by its length, and is named", () => {
  assert.deepEqual(timelineLinkParameters(1e9, 1e6, 7), { from: "998500000", to: "1002500000", slice: "7" });
});
