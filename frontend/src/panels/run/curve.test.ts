import assert from "node:assert/strict";
import test from "node:test";
import type { Steps } from "./curve.ts";
import { coloursOf, extent, OTHER_KINDS, ROOM, roundDurations, scaleOf, stepsAt, stepsOf } from "./curve.ts";

const MS = 1e6;

function step(start: number, longest: number, more: Partial<Steps> = {}): Steps {
  return {
    start: start * MS, kind: "training", slow: false, recorded: false, count: 1, shortest: longest * MS,
    median: longest * MS, longest: longest * MS, step: 0, dataWait: 0, cause: null, place: null, traceStart: null, ...more,
  };
}

test("no steps, an empty picture that still has a scale", () => {
  assert.deepEqual(stepsOf({ options: {}, columns: {}, rows: 0, total: 0, totals: {}, lacks: [] }), []);
  const scale = scaleOf([], extent([]), "logarithmic", 300, 200);
  assert.ok([...scale.marks, scale.x(0), scale.y(1e6)].every(Number.isFinite));
});

test("all steps are within the picture, the longest above the shortest", () => {
  const steps = [step(100, 10), step(110, 1000, { slow: true }), step(1110, 12)];
  for (const kind of ["logarithmic", "linear"] as const) {
    const scale = scaleOf(steps, extent(steps), kind, 400, 200);
    for (const one of steps) {
      assert.ok(scale.x(one.start) >= ROOM.left && scale.x(one.start + one.longest) <= 400 - ROOM.right);
      assert.ok(scale.y(one.longest) >= ROOM.top && scale.y(one.shortest) <= 200 - ROOM.bottom);
    }
    assert.ok(scale.y(1000 * MS) < scale.y(10 * MS));
    assert.equal(Math.round(scale.time(scale.x(500 * MS)) / MS), 500);
  }
});

test("one step alone has a scale of its own", () => {
  const steps = [step(0, 5)];
  const scale = scaleOf(steps, extent(steps), "logarithmic", 400, 200);
  assert.ok(scale.y(5 * MS) > ROOM.top && scale.y(5 * MS) < 200 - ROOM.bottom);
});

test("marks on a logarithmic axis are few and round", () => {
  assert.deepEqual(roundDurations(4 * MS, 60 * MS, 5), [5, 10, 20, 50].map((ms) => ms * MS));
  assert.deepEqual(roundDurations(MS, 100 * MS, 5), [1, 3, 10, 30, 100].map((ms) => ms * MS));
  assert.ok(roundDurations(1e3, 1e12, 4).length <= 4);
});

test("the steps under the pointer are the nearest, and none are where nothing is near", () => {
  const steps = [step(0, 10), step(1000, 400, { slow: true }), step(2000, 10)];
  const scale = scaleOf(steps, extent(steps), "logarithmic", 1000, 200);
  assert.equal(stepsAt(steps, scale, scale.x(1000 * MS) + 2, scale.y(400 * MS)), 1);
  assert.equal(stepsAt(steps, scale, scale.x(1200 * MS), scale.y(400 * MS)), 1); // while it lasts
  assert.equal(stepsAt(steps, scale, scale.x(2000 * MS) - 3, scale.y(10 * MS) + 4), 2);
  assert.equal(stepsAt(steps, scale, scale.x(600 * MS), scale.y(10 * MS)), null);
});

test("kinds beyond the colours share one", () => {
  const colours = [...coloursOf(["a", "b", "c", "d", "e", "f", "g"]).values()];
  assert.equal(new Set(colours.slice(0, 5)).size, 5);
  assert.deepEqual(colours.slice(5), [OTHER_KINDS, OTHER_KINDS]);
});

test("a table's rows are steps with their figures, and what is unknown is 0", () => {
  const columns = { start: [5], kind: ["training"], longest: [7], median: [null], traceStart: [null] };
  const [one] = stepsOf({ options: {}, columns, rows: 1, total: 1, totals: {}, lacks: [] });
  assert.deepEqual([one?.start, one?.longest, one?.median], [5, 7, 0]);
});

test("the picture has a little room before the first and after the last step", () => {
  assert.deepEqual(extent([step(100, 10), step(190, 10)]), { from: 99 * MS, to: 201 * MS });
  assert.deepEqual(extent([step(0, 100)]), { from: 0, to: 101 * MS });
});

test("linear marks are round and begin at 0, logarithmic ones lie between the shortest and the longest", () => {
  const steps = [step(0, 10), step(10, 100)];
  const marks = (kind: "linear" | "logarithmic") => scaleOf(steps, extent(steps), kind, 400, 232).marks.map((mark) => mark / MS);
  assert.deepEqual(marks("linear"), [0, 50, 100]);
  assert.deepEqual(marks("logarithmic"), [10, 20, 50, 100]);
});

test("a duration of 0 stands on a logarithmic axis too", () => {
  const steps = [step(0, 10)];
  assert.ok(Number.isFinite(scaleOf(steps, extent(steps), "logarithmic", 400, 200).y(0)));
});
