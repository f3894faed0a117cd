// The view `critical_path_band` as segments on lanes, and where they stand in a picture (pure).

import type { FullTable } from "../../parts/data/full-table.ts";
import { number, textAt } from "../../parts/data/full-table.ts";

export interface Segment {
  start: number;
  end: number;
  /** Time on the path: less than from start to end where segments of other lanes are between. */
  time: number;
  lane: number;
  kind: string;
  name: string | null;
  /** How many segments are drawn as one. */
  count: number;
  link: string | null;
  slice: number | null;
}

export interface Band {
  /** In order of time. */
  segments: readonly Segment[];
  /** The same by time on the path: what shares a pixel is covered by what takes most of it. */
  longestLast: readonly Segment[];
  /** Threads first, then streams, then waits. */
  lanes: readonly string[];
  start: number;
  end: number;
}

const WAITING = "waiting";

export function bandOf(table: FullTable): Band {
  const rows = Array.from({ length: table.rows }, (_, row) => row);
  const names = rows.map((row) => textAt(table, "lane", row) ?? "");
  const lanes = [...new Set(names)].toSorted((a, b) => rankOf(a) - rankOf(b) || a.localeCompare(b, "en", { numeric: true }));
  const places = new Map(lanes.map((lane, at) => [lane, at]));
  const segments = rows.map((row) => segmentOf(table, row, places.get(names[row] ?? "") ?? 0));
  return {
    segments,
    longestLast: segments.toSorted((one, other) => one.time - other.time),
    lanes,
    start: segments.reduce((least, { start }) => Math.min(least, start), Number.POSITIVE_INFINITY),
    end: segments.reduce((most, { end }) => Math.max(most, end), Number.NEGATIVE_INFINITY),
  };
}

function segmentOf(table: FullTable, row: number, lane: number): Segment {
  const start = number(table, "start", row) ?? 0;
  return {
    start,
    end: start + (number(table, "duration", row) ?? 0),
    time: number(table, "time", row) ?? 0,
    lane,
    kind: textAt(table, "kind", row) ?? "unknown",
    name: textAt(table, "name", row),
    count: number(table, "count", row) ?? 1,
    link: textAt(table, "link", row),
    slice: number(table, "longest", row),
  };
}

function rankOf(lane: string): number {
  if (lane === WAITING) return 2;
  return lane.startsWith("stream") ? 1 : 0;
}

/** The variable of style.css for each kind of segment. */
export const KIND_COLOURS: Readonly<Record<string, string>> = {
  compute: "kernel",
  communication: "collective",
  copy: "copy",
  latency: "runtime",
  data: "loading",
  gc: "memory",
  host: "operator",
  unknown: "other",
};

/** Kinds in the order of the legend. */
export const KINDS = Object.keys(KIND_COLOURS);

/** Where an instant stands, from 0 to the width. */
export function placeOf(instant: number, from: number, to: number, width: number): number {
  return to > from ? ((instant - from) / (to - from)) * width : 0;
}

/** The instant at a place. */
export function instantAt(x: number, from: number, to: number, width: number): number {
  return from + (width > 0 ? (x / width) * (to - from) : 0);
}

/** The changes of the lane along the path: one for each pixel and pair of lanes at most. */
export function edgesOf(band: Band, from: number, to: number, width: number): { x: number; top: number; bottom: number }[] {
  const found = new Map<string, { x: number; top: number; bottom: number }>();
  for (const [at, segment] of band.segments.entries()) {
    const before = band.segments[at - 1];
    if (before === undefined || before.lane === segment.lane || segment.start < from || segment.start > to) continue;
    const x = Math.round(placeOf(segment.start, from, to, width));
    const [top, bottom] = [Math.min(before.lane, segment.lane), Math.max(before.lane, segment.lane)];
    found.set(`${x} ${top} ${bottom}`, { x, top, bottom });
  }
  return [...found.values()];
}

/** The segment on a lane, or on the band of the whole path (lane -1), at an instant; the narrowest of several. */
export function segmentAt(band: Band, lane: number, instant: number, reach: number): number {
  let best = -1;
  let least = Number.POSITIVE_INFINITY;
  for (const [at, segment] of band.segments.entries()) {
    if (lane >= 0 && segment.lane !== lane) continue;
    if (instant < segment.start - reach || instant > segment.end + reach) continue;
    const length = segment.end - segment.start;
    if (length < least) [best, least] = [at, length];
  }
  return best;
}
