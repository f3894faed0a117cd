import assert from "node:assert/strict";
import test from "node:test";
import type { Page } from "../../../data/api.ts";
import type { NumberSlices } from "../../../data/numbers.ts";
import { Names } from "../drawing/names.ts";
import type { Slice } from "../drawing/viewport.ts";
import { highlightedOf, joinedSpans, placeBeside, wholeSpan } from "./places.ts";
import { partText } from "./texts.ts";

function page(columns: Record<string, (number | string | null)[]>): Page {
  const rows = Object.values(columns)[0]?.length ?? 0;
  const values = Object.fromEntries(Object.entries(columns).map(([name, cells]) => [name, { values: cells }]));
  return { view: "", options: {}, all: rows, total: rows, from: 0, rows, columns: values, totals: {}, lacks: [] };
}

const NUMBER: NumberSlices = {
  of: "account:launch-1", kind: "row", title: "launching", what: "", detail: "", answer: {}, are_examples: false,
  slice_count: 3, stretch_count: 1, stretch_time: 50, text: "",
  slices: page({
    id: [4, 7, 9], track: [1, 1, 2], row: [0, 2, 0], start: [100, 200, 300], duration: [50, null, 20],
    name: ["aten::mm", "aten::add", "gemm"], category: ["cpu_op", "cpu_op", "kernel"],
  }),
  stretches: page({ start: [150], duration: [50] }),
};
const asItIs = (slice: Slice) => slice;

test("slices lie on their rows, and with stretches in order of time", () => {
  const found = highlightedOf(NUMBER, new Names(), asItIs);
  assert.deepEqual(found.places.map(({ from, to, slice }) => [from, to, slice?.id ?? null]), [
    [100, 150, 4], [150, 200, null], [200, 200, 7], [300, 320, 9],
  ]);
  assert.deepEqual(found.lanes.get(1)?.map((lane) => lane && [...lane.start]), [[100], undefined, [200]]);
  assert.deepEqual(wholeSpan(found), { from: 100, to: 320 });
  const moved = highlightedOf(NUMBER, new Names(), (slice) => ({ ...slice, row: 5 }));
  assert.equal(moved.lanes.get(2)?.length, 6);
});

test("a number without slices has no span", () => {
  const none = { ...NUMBER, slices: page({ id: [] }), stretches: page({ start: [] }) };
  assert.equal(wholeSpan(highlightedOf(none, new Names(), asItIs)), null);
});

test("the next is from the last one if that is in the picture, else from its middle", () => {
  const found = highlightedOf(NUMBER, new Names(), asItIs);
  const span = { from: 0, to: 400 };
  assert.equal(placeBeside(found, 0, span, 1), 1);
  assert.equal(placeBeside(found, 3, span, 1), -1);
  assert.equal(placeBeside(found, 0, span, -1), -1);
  assert.equal(placeBeside(found, -1, span, 1), 2);
  assert.equal(placeBeside(found, 0, { from: 290, to: 400 }, -1), 3);
});

test("stretches that touch in the picture are drawn as one", () => {
  const stretches = { start: Float64Array.of(0, 12, 40, 90), end: Float64Array.of(10, 20, 50, 95) };
  assert.deepEqual(joinedSpans(stretches, { from: 0, to: 80 }, 5), [{ from: 0, to: 20 }, { from: 40, to: 50 }]);
  assert.deepEqual(joinedSpans(stretches, { from: 0, to: 80 }, 1).length, 3);
  assert.deepEqual(joinedSpans({ start: new Float64Array(), end: new Float64Array() }, { from: 0, to: 1 }, 1), []);
});

test("what is not highlighted is told", () => {
  assert.equal(partText({ number: { ...NUMBER, stretch_count: 0, stretches: page({ start: [] }) } }, false), null);
  assert.equal(partText({ number: { ...NUMBER, slice_count: 1200 } }, false), "Highlighted are the 3 longest of 1,200 slices. 50 ns in all counted steps are of no slice: bands show them");
  assert.equal(
    partText({ number: { ...NUMBER, slice_count: 9, stretch_count: 0 } }, true),
    "This report carries the 3 longest of 9 slices; `selftime serve` shows all",
  );
  assert.equal(partText({ number: { ...NUMBER, stretch_count: 0, are_examples: true } }, false), "The rule names no other slices");
});
