import assert from "node:assert/strict";
import test from "node:test";
import { visibleRange } from "./window.ts";

test("no rows, nothing to draw", () => {
  assert.deepEqual(visibleRange(0, 24, 0, 500), { from: 0, to: 0 });
});

test("of many rows only those in sight and a few more are drawn", () => {
  assert.deepEqual(visibleRange(100_000, 20, 20_000, 400, 5), { from: 995, to: 1025 });
});

test("at the ends there is nothing beyond", () => {
  assert.deepEqual(visibleRange(10, 20, 0, 400, 5), { from: 0, to: 10 });
  assert.deepEqual(visibleRange(3, 20, 5000, 400, 5), { from: 3, to: 3 });
});
