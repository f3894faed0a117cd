import assert from "node:assert/strict";
import test from "node:test";
import { scrollRowIntoView, visibleRange } from "./window.ts";

test("no rows, nothing to draw", () => {
  assert.deepEqual(visibleRange(0, 24, 0, 500), { from: 0, to: 0 });
});

test("of many rows only those in sight and a few more are drawn", () => {
  assert.deepEqual(visibleRange(100_000, 20, 20_000, 400, 5), { from: 995, to: 1025 });
  assert.deepEqual(visibleRange(100_000, 20, 20_000, 400), { from: 992, to: 1028 });
});

test("a row is scrolled to no further than shows it whole, below the head", () => {
  const scrolled = (from: number, row: number) => {
    const shown = { scrollTop: from, clientHeight: 100 };
    scrollRowIntoView(shown as HTMLElement, row, 20, 24);
    return shown.scrollTop;
  };
  assert.deepEqual([scrolled(200, 10), scrolled(200, 12), scrolled(204, 13)], [200, 200, 204]);
  assert.deepEqual([scrolled(200, 9), scrolled(200, 13), scrolled(0, 50)], [180, 204, 944]);
});

test("at the ends there is nothing beyond", () => {
  assert.deepEqual(visibleRange(10, 20, 0, 400, 5), { from: 0, to: 10 });
  assert.deepEqual(visibleRange(3, 20, 5000, 400, 5), { from: 3, to: 3 });
});
