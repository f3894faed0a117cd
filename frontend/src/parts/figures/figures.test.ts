import assert from "node:assert/strict";
import { test } from "node:test";
import { byDevice, figures, stepFigures } from "./figures.ts";
import type { FullTable } from "../data/full-table.ts";

const ROWS: [string, number | null, string, string | null][] = [
  ["steps", null, "bound by", "gaps between device work"],
  ["steps", null, "step time, median", "3 ms"],
  ["steps", null, "step time, p95", "4 ms"],
  ["device", 0, "name", "A"],
  ["device", 0, "busy", null],
  ["device", 1, "name", "B"],
];
const TABLE: FullTable = {
  options: {},
  columns: {
    section: ROWS.map((row) => row[0]),
    device: ROWS.map((row) => row[1]),
    metric: ROWS.map((row) => row[2]),
    text: ROWS.map((row) => row[3]),
  },
  rows: ROWS.length,
  total: ROWS.length,
  totals: {},
  lacks: [],
};

test("times of the step stand under one name with their spread", () => {
  const { times, others } = stepFigures(figures(TABLE, {}));
  assert.deepEqual(times.map(({ name, median, deviation, p95 }) => [name, median?.text, deviation, p95?.text]), [
    ["step time", "3 ms", null, "4 ms"],
  ]);
  assert.deepEqual(others.map((figure) => figure.metric), ["bound by"]);
});

test("devices stand side by side; what one does not have stays empty", () => {
  const { devices, rows } = byDevice(figures(TABLE, {}));
  assert.deepEqual(devices, [0, 1]);
  assert.deepEqual(rows.map((row) => row.map((figure) => figure?.text)), [["A", "B"], [null, undefined]]);
});
