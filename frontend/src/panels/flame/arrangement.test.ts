import assert from "node:assert/strict";
import test from "node:test";
import { arrangementOf, metricOf, sandwichOf, sharedOptions, typicalStep } from "./arrangement.ts";

test("an unknown arrangement is the usual one", () => {
  assert.equal(arrangementOf({}), "top_down");
  assert.equal(arrangementOf({ tree: "sandwich" }), "sandwich");
  assert.equal(arrangementOf({ tree: "upside_down" }), "top_down");
});

test("in time the host's is shown unless something else is asked for; a report has but the usual", () => {
  assert.equal(metricOf({ tree: "time" }, false), "host");
  assert.equal(metricOf({ tree: "time" }, true), "auto");
  assert.equal(metricOf({ tree: "time", metric: "device" }, false), "device");
  assert.equal(sharedOptions({ thread: "9", counted: "true" }, false)["counted"], true);
});

test("the sandwich of a name sums the time that was shown, and forgets the focus", () => {
  const params = sandwichOf({ tree: "time", focus: "3" }, "aten::mm", "operator");
  assert.deepEqual(params, {
    focus: undefined, at: undefined, detail: undefined, file: undefined, line: undefined, function: undefined, tree: "sandwich", of: "aten::mm", kind: "operator", metric: "host",
  });
  assert.equal(sandwichOf({}, "aten::mm", "")["metric"], undefined);
});

test("the typical step is the median of those that count, or of all if none does", () => {
  const step = (number: number, time: number, counted = true) => ({ number, time, counted });
  assert.equal(typicalStep([step(0, 99, false), step(1, 5), step(2, 3), step(3, 4)])?.number, 3);
  assert.equal(typicalStep([step(7, 9, false)])?.number, 7);
  assert.equal(typicalStep([]), undefined);
});
