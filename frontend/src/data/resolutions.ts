// The timeline in a report: whole traces at some resolutions, and the part of one that is asked for.
// Rows stay in the order of the view, by track, row and start.

import type { Options, Values } from "./api.ts";
import type { ReportTable } from "./inline.ts";
import { valueAt } from "./table.ts";
import type { Table } from "./table.ts";

/** Whether a query is for a time range of the timeline. */
export function isTimeRangeQuery(view: string, options: Options): boolean {
  return view === "timeline" && (options["what"] ?? "visible") === "visible" && (options["selected"] ?? -1) === -1;
}

/** The coarsest resolution that is at least as fine as requested, else the finest. */
export function suitableResolution(tables: readonly ReportTable[], options: Options): ReportTable | undefined {
  const known = tables
    .filter(({ view, options: held }) => view === "timeline" && held["pixels"] !== undefined)
    .sort((one, other) => width(other.options) - width(one.options));
  const wanted = width(options);
  return known.find((table) => width(table.options) <= wanted) ?? known.at(-1);
}

/** Nanoseconds per pixel; without options, all time in 1000 pixels. */
function width({ start, end, pixels }: Options): number {
  if (typeof start !== "number" || typeof end !== "number") return Infinity;
  return (end - start) / Number(pixels ?? 1000);
}

/** Indices of rows in the requested time range and tracks. */
export function rowsInRange(table: Table, options: Options): Uint32Array {
  const { start, end, tracks } = options;
  const from = typeof start === "number" ? start : -Infinity;
  const to = typeof end === "number" && end !== 0 ? end : Infinity;
  const time = numbers(table.values["start"]);
  const long = numbers(table.values["duration"]);
  const on = chosen(table, String(tracks ?? ""));
  const found: number[] = [];
  for (let row = 0; row < table.rows; row++) {
    const begin = time(row);
    if (begin < to && begin + (long(row) || 0) >= from && on(row)) found.push(row);
  }
  return Uint32Array.from(found);
}

/** Whether a row is on one of the named tracks; `counters` means all counters. */
function chosen(table: Table, words: string): (row: number) => boolean {
  const asked = new Set(words.split(",").filter(Boolean));
  const numbered = [...asked].filter((word) => word !== "counters");
  if (numbered.length === 0 && !asked.has("counters")) return () => true;
  if (numbered.some((word) => !/^\d+$/.test(word))) return () => true; // a kind of tracks: then all
  const track = numbers(table.values["track"]);
  const { kind } = table.values;
  const ids = new Set(numbered.map(Number));
  const hasCounters = asked.has("counters") && kind !== undefined;
  return (row) => ids.has(track(row)) || (hasCounters && valueAt(kind, row) === "counter");
}

/** NaN where it is unknown. */
function numbers(values: Values | undefined): (row: number) => number {
  if (values === undefined || !("values" in values)) return () => Number.NaN;
  const cells = values.values;
  return (row) => {
    const cell = cells[row];
    return typeof cell === "number" ? cell : Number.NaN;
  };
}
