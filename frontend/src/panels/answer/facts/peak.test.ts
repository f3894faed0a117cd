import assert from "node:assert/strict";
import { test } from "node:test";
import { peaksOf } from "./peak.ts";
import type { FullTable } from "../../../parts/data/full-table.ts";

test("a device's rows add up to its peak; devices come before the host", () => {
  const rows: [string, number, number][] = [["CPU", -1, 5], ["CUDA", 0, 30], ["CUDA", 0, 12], ["CUDA", 1, 0]];
  const table: FullTable = {
    options: {}, rows: rows.length, total: rows.length, totals: {}, lacks: [],
    columns: { device_type: rows.map((row) => row[0]), device: rows.map((row) => row[1]), bytes: rows.map((row) => row[2]) },
  };
  assert.deepEqual(peaksOf(table, new Map([[0, 84]])), [
    { title: "CUDA 0", key: "CUDA:0", bytes: 42, capacity: 84 },
    { title: "host", key: "CPU:-1", bytes: 5, capacity: null },
  ]);
});
