// A tile: the data of a track for 1024 pixels of a power of two of ns each.

import type { Options, Page } from "../../../data/api.ts";
import { cellReader } from "./cell-reader.ts";
import type { Names } from "../drawing/names.ts";

export const PIXELS = 1024;
/** The coarsest level. */
export const COARSEST = 50;

/** Which tile: level `n` has 2**n ns a pixel; the number counts tiles from the origin. */
export interface Place {
  level: number;
  number: number;
}

/** The slices of one row, sorted and disjoint; merged slices have no id. */
export interface Lane {
  start: Float64Array;
  end: Float64Array;
  name: Int32Array;
  /** The slice's id; -1 for merged slices. */
  id: Int32Array | Float64Array;
  count: Int32Array;
  /** NaN where it is unknown. */
  self: Float64Array;
  /** Share of the time that the slices cover. */
  filled: Float32Array;
}

/** Samples of a counter. */
export interface Samples {
  start: Float64Array;
  end: Float64Array;
  mean: Float64Array;
  low: Float64Array;
  high: Float64Array;
}

export interface Marks {
  time: Float64Array;
  name: Int32Array;
  count: Int32Array;
}

/** What one track has in a tile. */
export interface Part {
  lanes: Lane[];
  marks: Marks | null;
  /** Rows it was read from, for the account of memory. */
  size: number;
  /** Rows of the track that are held; 0 for all. */
  depth: number;
}

export function levelFor(nsPerPixel: number): number {
  return Math.min(Math.max(Math.floor(Math.log2(nsPerPixel)), 0), COARSEST);
}

export function width(level: number): number {
  return PIXELS * 2 ** level;
}

/** The tiles of a level that overlap a time span. */
export function tilesInSpan(from: number, to: number, level: number): number[] {
  const first = Math.floor(from / width(level));
  const last = Math.max(first, Math.ceil(to / width(level)) - 1);
  return Array.from({ length: last - first + 1 }, (_, at) => first + at);
}

/** The view's options for a tile; see README.md for the end at 0. */
export function optionsOf(place: Place, tracks: readonly string[], depth: number): Options {
  const start = place.number * width(place.level);
  const end = start + width(place.level);
  const more = end === 0 ? 1 : 0;
  return {
    start,
    end: end + more * 2 ** place.level,
    pixels: PIXELS + more,
    tracks: tracks.join(","),
    depth,
  };
}

/** ns per pixel of a response, if given. */
export function resolution(page: Page): number | null {
  const { start, end, pixels } = page.options;
  if (typeof start !== "number" || typeof end !== "number" || typeof pixels !== "number") return null;
  return end > start && pixels > 0 ? (end - start) / pixels : null;
}

const SLICES: ReadonlySet<string> = new Set(["slice", "merged"]);

/** The parts of a page by track. Rows that lie outside the tile are left out. */
export function partsOf(page: Page, place: Place, names: Names): Map<number, Part> {
  const read = cellReader(page);
  const from = place.number * width(place.level);
  const to = from + width(place.level);
  const rows = new Map<number, Map<number, number[]>>();
  const marks = new Map<number, number[]>();
  for (let row = 0; row < page.rows; row++) {
    const kind = read.text("kind", row);
    if (!SLICES.has(kind) && kind !== "instant") continue;
    const start = read.number("start", row);
    const end = start + (read.number("duration", row) || 0);
    if (start >= to || (end < from && start < from)) continue;
    const track = read.number("track", row);
    if (kind === "instant") push(marks, track, row);
    else push(within(rows, track), read.number("row", row), row);
  }
  const found = new Map<number, Part>();
  for (const [track, lanes] of rows) {
    const list: Lane[] = [];
    let size = 0;
    for (const [lane, those] of lanes) {
      list[lane] = laneOf(read, those, names);
      size += those.length;
    }
    found.set(track, { lanes: Array.from(list, (lane) => lane ?? NO_LANE), marks: null, size, depth: 0 });
  }
  for (const [track, those] of marks) {
    const part = found.get(track) ?? { lanes: [], marks: null, size: 0, depth: 0 };
    found.set(track, { ...part, marks: marksOf(read, those, names), size: part.size + those.length });
  }
  return found;
}

function push<K>(lists: Map<K, number[]>, key: K, row: number): void {
  const list = lists.get(key);
  if (list) list.push(row);
  else lists.set(key, [row]);
}

function within<K, L, V>(maps: Map<K, Map<L, V>>, key: K): Map<L, V> {
  let found = maps.get(key);
  if (!found) maps.set(key, (found = new Map()));
  return found;
}

type Reading = ReturnType<typeof cellReader>;

export const NO_LANE: Lane = {
  start: new Float64Array(),
  end: new Float64Array(),
  name: new Int32Array(),
  id: new Int32Array(),
  count: new Int32Array(),
  self: new Float64Array(),
  filled: new Float32Array(),
};

function laneOf(read: Reading, rows: readonly number[], names: Names): Lane {
  const start = Float64Array.from(rows, (row) => read.number("start", row));
  const length = rows.map((row) => read.number("duration", row) || 0);
  return {
    start,
    end: start.map((time, at) => time + (length[at] ?? 0)),
    name: Int32Array.from(rows, (row) => names.code(read.text("name", row), read.text("category", row))),
    id: Int32Array.from(rows, (row) => Number(read.cell("id", row) ?? -1)),
    count: Int32Array.from(rows, (row) => read.number("count", row)),
    self: Float64Array.from(rows, (row) => read.number("self", row)),
    filled: Float32Array.from(rows, (row, at) => {
      const all = length[at] ?? 0;
      return all > 0 ? Math.min(1, read.number("busy", row) / all) : 1;
    }),
  };
}

function marksOf(read: Reading, rows: readonly number[], names: Names): Marks {
  return {
    time: Float64Array.from(rows, (row) => read.number("start", row)),
    name: Int32Array.from(rows, (row) => names.code(read.text("name", row), "mark")),
    count: Int32Array.from(rows, (row) => read.number("count", row)),
  };
}

/** The samples of a page by counter, whose titles are those of the list of tracks. */
export function samplesOf(page: Page, place: Place | null): Map<string, Samples> {
  const read = cellReader(page);
  const from = place === null ? -Infinity : place.number * width(place.level);
  const to = place === null ? Infinity : from + width(place.level);
  const rows = new Map<string, number[]>();
  for (let row = 0; row < page.rows; row++) {
    if (read.text("kind", row) !== "counter") continue;
    const start = read.number("start", row);
    if (start >= to || start + (read.number("duration", row) || 0) < from) continue;
    push(rows, read.text("name", row), row);
  }
  const of = (those: number[], name: string) =>
    Float64Array.from(those, (row) => read.number(name, row));
  return new Map(
    [...rows].map(([name, those]) => {
      const start = of(those, "start");
      const long = of(those, "duration");
      const end = start.map((time, at) => time + (long[at] || 0));
      return [name, { start, end, mean: of(those, "value"), low: of(those, "low"), high: of(those, "high") }];
    }),
  );
}

/** The last interval that begins at or before a time; -1 if none. */
export function lastStartedBy(start: Float64Array, time: number): number {
  let low = 0;
  let high = start.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((start[middle] as number) <= time) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}
