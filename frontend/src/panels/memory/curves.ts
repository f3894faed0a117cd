// The view `memory_curve` as one curve per device (pure).

import type { Filter } from "../../data/api.ts";
import type { Span } from "../../draw/span.ts";
import type { FullTable } from "../../parts/data/full-table.ts";
import { cell, number, textAt } from "../../parts/data/full-table.ts";

export interface Curve {
  /** Device type and number, as in the URL. */
  key: string;
  type: string | null;
  device: number | null;
  /** The device's name, such as `CUDA 0` or `host`. */
  title: string;
  name: string | null;
  capacity: number | null;
  /** A lower bound of the totals of merged records. */
  atLeast: boolean;
  times: number[];
  allocated: number[];
  /** Reserved bytes; null without an allocator that reserves memory. */
  reserved: number[] | null;
  /** Whether it is the sum of some bands alone. */
  isPart: boolean;
  /** The time of the peak. */
  peak: { time: number; allocated: number };
}

export function curvesOf(table: FullTable): Curve[] {
  const curves = new Map<string, Curve>();
  for (let row = 0; row < table.rows; row++) {
    const type = textAt(table, "device_type", row);
    const device = number(table, "device", row);
    const key = `${type ?? "unknown"}:${device ?? ""}`;
    const curve = curves.get(key) ?? begun(table, row, key, type, device);
    curves.set(key, curve);
    const [time, allocated] = [number(table, "time", row) ?? 0, number(table, "allocated", row) ?? 0];
    curve.times.push(time);
    curve.allocated.push(allocated);
    const reserved = number(table, "reserved", row);
    if (reserved === null) curve.reserved = null;
    else curve.reserved?.push(reserved);
    if (allocated > curve.peak.allocated) curve.peak = { time, allocated };
  }
  return [...curves.values()];
}

function begun(table: FullTable, row: number, key: string, type: string | null, device: number | null): Curve {
  return {
    key, type, device,
    title: type === "CPU" ? "host" : `${type ?? "device"} ${device ?? ""}`.trim(),
    name: textAt(table, "name", row),
    capacity: number(table, "capacity", row),
    atLeast: cell(table, "how", row) === "summed",
    isPart: false, times: [], allocated: [], reserved: [],
    peak: { time: number(table, "time", row) ?? 0, allocated: -Infinity },
  };
}

/** The conditions that keep a device's rows of a view. */
export function ofDevice(curve: Curve): Filter[] {
  const { type, device } = curve;
  const told = [["device_type", type] as const, ["device", device === null ? null : String(device)] as const];
  return told.flatMap(([column, value]) => (value === null ? [] : [{ column, op: "is" as const, value }]));
}

/** The curve by a clock that is some ns ahead of its own. */
export function shifted(curve: Curve, by: number): Curve {
  const { time, allocated } = curve.peak;
  return { ...curve, times: curve.times.map((at) => at + by), peak: { time: time + by, allocated } };
}

/** How far one trace's clock is ahead of another's in ns; null unless both recorded at one time. */
export function clockOffset(own: Recorded, other: Recorded): number | null {
  if (own.origin === null || other.origin === null) return null;
  const offset = (other.origin - own.origin) * 1000;
  const overlap = Math.min(own.span.to, other.span.to + offset) - Math.max(own.span.from, other.span.from + offset);
  return overlap > 0 ? offset : null;
}

/** When a trace was recorded: its origin in microseconds since the epoch, its span from there in ns. */
export interface Recorded {
  origin: number | null;
  span: Span;
}

/** The time span of all curves. */
export function extent(curves: readonly Curve[]): Span {
  const from = Math.min(...curves.map((curve) => curve.times[0] ?? Infinity));
  const to = Math.max(...curves.map((curve) => curve.times.at(-1) ?? -Infinity));
  return to > from ? { from, to } : { from, to: from + 1000 };
}

/**
 * The window to load for a span in sight: wider, and on a grid, so that a small move needs nothing
 * new; null if that is most of the recording, or nothing of it.
 */
export function windowOf(span: Span, limits: Span): Span | null {
  const step = 2 ** Math.ceil(Math.log2(Math.max(span.to - span.from, 1)));
  if (2 * step > limits.to - limits.from) return null;
  const first = Math.floor(span.from / step);
  const from = Math.max((first - 1) * step, Math.floor(limits.from), 0);
  const to = Math.min((first + 3) * step, Math.ceil(limits.to));
  return to > from ? { from, to } : null;
}

/** The last point at or before a time; -1 if none. */
export function pointAt(times: readonly number[], time: number): number {
  let [low, high] = [0, times.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((times[middle] ?? Infinity) <= time) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/** The highest total within a time span. */
export function highest(curve: Curve, span: Span): { time: number; allocated: number } | null {
  const first = pointAt(curve.times, span.from);
  let best: { time: number; allocated: number } | null = null;
  for (let at = Math.max(first, 0); (curve.times[at] ?? Infinity) <= span.to; at++) {
    const allocated = curve.allocated[at] ?? 0;
    if (best === null || allocated > best.allocated) {
      best = { time: Math.max(curve.times[at] ?? 0, span.from), allocated };
    }
  }
  return best;
}

/** Round sizes from 0 to a maximum, in steps of powers of two. */
export function sizes(most: number, marks: number): number[] {
  if (!(most > 0)) return [0];
  const step = 2 ** Math.max(Math.ceil(Math.log2(most / marks)), 0);
  return Array.from({ length: Math.floor(most / step) + 1 }, (_, at) => at * step);
}

/**
 * The nearest record's time if it is near, else the time itself. A curve has not every record: between
 * two that are close its amount may be another, after one that is not it holds.
 */
export function snapped(times: readonly number[], time: number, near: number): number {
  const at = pointAt(times, time);
  const around = [times[at], times[at + 1]].filter((one) => one !== undefined && Math.abs(one - time) <= near) as number[];
  return around.reduce((best, one) => (Math.abs(one - time) < Math.abs(best - time) ? one : best), around[0] ?? time);
}
