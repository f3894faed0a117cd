import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import type { FullTable } from "../../parts/data/full-table.ts";
import { bandOf, edgesOf, instantAt, KIND_COLOURS, placeOf, segmentAt } from "./band.ts";

// thread 1:  hhhh      hh
// stream 7:       cccc
// waiting:      ll
const table: FullTable = {
  options: {}, rows: 4, total: 4, totals: {}, lacks: [],
  columns: {
    start: [100, 140, 150, 190],
    duration: [40, 20, 40, 20],
    lane: ["thread 1", "waiting", "stream 7", "thread 1"],
    kind: ["host", "latency", "compute", "host"],
    name: ["aten::mm", "gemm", "gemm", null],
    time: [40, 10, 40, 20],
    count: [1, 3, 1, 1],
    link: ["begin", "launch", "launch", "wait"],
    longest: [1, 2, 2, null],
  },
};
const band = bandOf(table);

test("threads stand first, then streams, then waits", () => {
  assert.deepEqual(band.lanes, ["thread 1", "stream 7", "waiting"]);
  assert.deepEqual(band.segments.map(({ lane }) => lane), [0, 2, 1, 0]);
  assert.deepEqual([band.start, band.end], [100, 210]);
  assert.deepEqual(band.longestLast.map(({ time }) => time), [10, 20, 40, 40]);
  assert.deepEqual(bandOf({ ...table, rows: 0, columns: {} }).segments, []);
});

test("an instant has a place, and a place an instant", () => {
  assert.equal(placeOf(150, 100, 200, 1000), 500);
  assert.equal(instantAt(500, 100, 200, 1000), 150);
});

test("an edge leads from lane to lane, once for each pixel", () => {
  assert.deepEqual(edgesOf(band, 100, 210, 110), [
    { x: 40, top: 0, bottom: 2 }, { x: 50, top: 1, bottom: 2 }, { x: 90, top: 0, bottom: 1 },
  ]);
  const many = { ...band, segments: Array.from({ length: 10_000 }, (_, at) => ({ ...band.segments[0]!, lane: at % 2, start: 100 + at / 100, end: 100 + (at + 1) / 100 })) };
  assert.ok(edgesOf(many, 100, 200, 50).length <= 51);
});

test("the narrowest segment under the pointer is found, within reach", () => {
  assert.equal(segmentAt(band, -1, 155, 0), 1);
  assert.equal(segmentAt(band, 1, 155, 0), 2);
  assert.equal(segmentAt(band, 1, 149, 2), 2);
  assert.equal(segmentAt(band, 1, 120, 2), -1);
});

test("every kind of the view has a colour of the style sheet", () => {
  const sheet = readFileSync(new URL("../../style.css", import.meta.url), "utf8");
  for (const colour of Object.values(KIND_COLOURS)) assert.match(sheet, new RegExp(`--${colour}: #`));
});

test("of a stretch that lasts no time, or a picture without width, nothing is divided by 0", () => {
  assert.equal(placeOf(100, 100, 100, 1000), 0);
  assert.equal(instantAt(5, 100, 200, 0), 100);
});

test("an edge beyond the shown stretch is not drawn, and one goes from the upper lane to the lower", () => {
  assert.deepEqual(edgesOf(band, 145, 160, 15), [{ x: 5, top: 1, bottom: 2 }]);
  assert.deepEqual(band.segments.map(({ count }) => count), [1, 3, 1, 1]);
  const unknown = bandOf({ ...table, columns: { ...table.columns, count: [null, 3, 1, 1] } });
  assert.equal(unknown.segments[0]?.count, 1);
});
