// The operators of a trace as points of a roofline (Williams, Waterman and Patterson 2009): achieved
// operations a second over operations for each byte moved, below the peaks of the device.

import type { FullTable } from "../../parts/data/full-table.ts";
import { number, textAt } from "../../parts/data/full-table.ts";

export interface RooflinePoint {
  name: string;
  /** Input shapes, if the table is by shape. */
  shapes: string | null;
  dtype: string | null;
  /** Time in ns of what it computed, and its share of the self time of all operators. */
  time: number;
  share: number;
  /** Operations for each byte. */
  intensity: number;
  /** Operations a second. */
  rate: number;
  /** The most operations a second at this intensity by the peaks that are known; null without the memory's. */
  roof: number | null;
  /** What the roof is at this intensity; null if unknown. */
  boundBy: "memory" | "compute" | null;
}

/** The peak of computation in a dtype, and of memory. */
export interface Roof {
  dtype: string | null;
  flops: number;
  bytes: number;
}

export interface Roofline {
  points: RooflinePoint[];
  roofs: Roof[];
  /** Self time in ns of all operators, and of those that are points. */
  whole: number;
  modelled: number;
}

/** The columns of an operator's time: without and with what it called. */
export interface TimeColumns {
  self: string;
  total: string;
}

/** The operators that a model tells the work of, each with the time that this work took. */
export function rooflineOf(table: FullTable, times: TimeColumns): Roofline {
  const rows = Array.from({ length: table.rows }, (_, row) => row);
  const whole = rows.reduce((sum, row) => sum + (number(table, times.self, row) ?? 0), 0);
  const found = rows.flatMap((row) => pointOf(table, row, times, whole));
  const points = found.toSorted((one, other) => other.time - one.time);
  const modelled = points.reduce((sum, point) => sum + point.time, 0);
  return { points, roofs: roofsOf(table, rows), whole, modelled };
}

function pointOf(table: FullTable, row: number, times: TimeColumns, whole: number): RooflinePoint[] {
  const of = (name: string) => number(table, name, row) ?? 0;
  const [flops, bytes] = [of("self_model_flops"), of("self_model_bytes")];
  // What it called has no model of its own, such as a library's convolution: that took the time.
  const taken = of(flops === of("model_flops") ? times.total : times.self);
  if (flops <= 0 || bytes <= 0 || taken <= 0) return [];
  const [intensity, rate] = [flops / bytes, flops / (taken / 1e9)];
  const [most, memory] = [number(table, "peak_flops", row), peakOfMemory(table, row, intensity)];
  const roof = memory === null ? null : Math.min(most ?? memory, memory);
  return [{
    name: textAt(table, "name", row) ?? "",
    shapes: textAt(table, "input_shapes", row),
    dtype: textAt(table, "dtype", row),
    time: taken,
    share: taken / whole,
    intensity,
    rate,
    roof,
    boundBy: roof === null ? null : roof === most ? "compute" : "memory",
  }];
}

function peakOfMemory(table: FullTable, row: number, intensity: number): number | null {
  const bytes = number(table, "peak_bytes", row);
  return bytes === null ? null : intensity * bytes;
}

/** The different roofs of the rows with a model, the highest first. */
function roofsOf(table: FullTable, rows: readonly number[]): Roof[] {
  const found = new Map<string, Roof>();
  for (const row of rows) {
    const [flops, bytes] = [number(table, "peak_flops", row), number(table, "peak_bytes", row)];
    if (flops === null || bytes === null || !number(table, "self_model_flops", row)) continue;
    const roof = { dtype: textAt(table, "dtype", row), flops, bytes };
    found.set(JSON.stringify(roof), roof);
  }
  return [...found.values()].sort((one, other) => other.flops - one.flops);
}

/** The ends of an axis in whole powers of ten around some values. */
export function decades(values: readonly number[]): [number, number] {
  const logs = values.filter((value) => value > 0).map(Math.log10);
  if (logs.length === 0) return [1, 10];
  return [10 ** Math.floor(Math.min(...logs)), 10 ** Math.ceil(Math.max(...logs) + 1e-9)];
}

/** The line of a roof from left to right: up with the memory's peak, then level. */
export function roofLine(roof: Roof, left: number, right: number): [number, number][] {
  const ridge = roof.flops / roof.bytes;
  const level = [Math.max(ridge, left), right].map((x): [number, number] => [x, Math.min(roof.flops, x * roof.bytes)]);
  return ridge > left ? [[left, left * roof.bytes], ...level] : level;
}
