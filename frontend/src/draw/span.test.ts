import assert from "node:assert/strict";
import { test } from "node:test";
import { CLOSEST, padSpan, interpolateSpan, moveSpan, clampSpan, zoomSpan } from "./span.ts";

const LIMITS = { from: 0, to: 1000 };

test("a zoom leaves the instant under the pointer where it is", () => {
  const found = zoomSpan({ from: 200, to: 600 }, 300, 0.5, LIMITS);
  assert.deepEqual(found, { from: 250, to: 450 });
  assert.equal((300 - found.from) / 200, (300 - 200) / 400);
});

test("nothing is shown beyond the limits, and not closer than the closest", () => {
  assert.deepEqual(zoomSpan({ from: 200, to: 600 }, 300, 9, LIMITS), LIMITS);
  assert.deepEqual(moveSpan({ from: 200, to: 600 }, -500, LIMITS), { from: 0, to: 400 });
  assert.deepEqual(moveSpan({ from: 200, to: 600 }, 5000, LIMITS), { from: 600, to: 1000 });
  const close = zoomSpan({ from: 200, to: 600 }, 300, 1e-9, LIMITS);
  assert.equal(close.to - close.from, CLOSEST);
  assert.deepEqual(clampSpan({ from: -5, to: 2000 }, LIMITS), LIMITS);
});

test("room is left around a slice, even around one of no length", () => {
  assert.deepEqual(padSpan({ from: 400, to: 500 }, 0.1, LIMITS), { from: 380, to: 520 });
  assert.deepEqual(padSpan({ from: 400, to: 400 }, 0.1, LIMITS), { from: 380, to: 420 });
});

test("the way between stretches begins and ends with them, and grows by equal factors", () => {
  const [one, other] = [{ from: 0, to: 1000 }, { from: 400, to: 410 }];
  assert.deepEqual(interpolateSpan(one, other, 0), one);
  assert.deepEqual(interpolateSpan(one, other, 1), other);
  const half = interpolateSpan(one, other, 0.5);
  assert.ok(Math.abs(half.to - half.from - 100) < 1e-6);
  assert.ok(half.from > 300 && half.to < 500, "the target stays in the picture");
});
