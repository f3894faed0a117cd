// A tile: the data of a track for 1024 pixels of a power of two of ns each.

import type { Options, Page } from "../../../data/api.ts";
import { columnNumbers, columnTexts, gathered } from "./columns.ts";
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
  const from = place.number * width(place.level);
  const to = from + width(place.level);
  const rows = new Map<number, Map<number, number[]>>();
  const marks = new Map<number, number[]>();
  const of = columnsOf(page, names);
  const kinds = columnTexts(page, "kind");
  const [areSlices, areMarks] = [kinds.texts.map((kind) => SLICES.has(kind)), kinds.texts.map((kind) => kind === "instant")];
  const [tracks, lines] = [columnNumbers(page, "track"), columnNumbers(page, "row")];
  let lane = { track: Number.NaN, line: Number.NaN, rows: [] as number[] }; // rows of a lane follow one another
  for (let row = 0; row < page.rows; row++) {
    const kind = kinds.codes[row] as number;
    if (areSlices[kind] !== true && areMarks[kind] !== true) continue;
    const [start, end] = [of.start[row] as number, of.end[row] as number];
    if (start >= to || (end < from && start < from)) continue;
    const [track, line] = [tracks[row] as number, lines[row] as number];
    if (areMarks[kind] === true) push(marks, track, row);
    else {
      if (lane.track !== track || lane.line !== line) lane = { track, line, rows: listed(within(rows, track), line) };
      lane.rows.push(row);
    }
  }
  const found = new Map<number, Part>();
  for (const [track, lanes] of rows) {
    const list: Lane[] = [];
    let size = 0;
    for (const [lane, those] of lanes) {
      list[lane] = laneOf(of, those);
      size += those.length;
    }
    found.set(track, { lanes: Array.from(list, (lane) => lane ?? NO_LANE), marks: null, size, depth: 0 });
  }
  for (const [track, those] of marks) {
    const part = found.get(track) ?? { lanes: [], marks: null, size: 0, depth: 0 };
    found.set(track, { ...part, marks: marksOf(of, those), size: part.size + those.length });
  }
  return found;
}

function push<K>(lists: Map<K, number[]>, key: K, row: number): void {
  listed(lists, key).push(row);
}

function listed<K>(lists: Map<K, number[]>, key: K): number[] {
  let found = lists.get(key);
  if (!found) lists.set(key, (found = []));
  return found;
}

function within<K, L, V>(maps: Map<K, Map<L, V>>, key: K): Map<L, V> {
  let found = maps.get(key);
  if (!found) maps.set(key, (found = new Map()));
  return found;
}

export const NO_LANE: Lane = {
  start: new Float64Array(),
  end: new Float64Array(),
  name: new Int32Array(),
  id: new Int32Array(),
  count: new Int32Array(),
  self: new Float64Array(),
  filled: new Float32Array(),
};

/** What is drawn of the rows of a page. */
interface Columns extends Record<"start" | "end" | "busy" | "id" | "count" | "self", Float64Array> {
  /** The code of a row's name and category, and that of a mark. */
  name: (row: number) => number;
  mark: (row: number) => number;
}

function columnsOf(page: Page, names: Names): Columns {
  const start = columnNumbers(page, "start");
  const end = columnNumbers(page, "duration");
  for (let row = 0; row < end.length; row++) end[row] = (start[row] as number) + (end[row] || 0);
  const [texts, categories] = [columnTexts(page, "name"), columnTexts(page, "category")];
  const known = new Map<number, number>();
  const name = (row: number) => {
    const [text, category] = [texts.codes[row] as number, categories.codes[row] as number];
    const key = text * categories.texts.length + category;
    let code = known.get(key);
    if (code === undefined) known.set(key, (code = names.code(texts.texts[text] ?? "", categories.texts[category] ?? "")));
    return code;
  };
  const mark = (row: number) => names.code(texts.texts[texts.codes[row] as number] ?? "", "mark");
  const numbers = (column: string) => columnNumbers(page, column);
  return {
    start, end, busy: numbers("busy"), id: numbers("id"), count: numbers("count"), self: numbers("self"), name, mark,
  };
}

function laneOf(of: Columns, rows: readonly number[]): Lane {
  const [start, end, busy] = [gathered(of.start, rows), gathered(of.end, rows), gathered(of.busy, rows)];
  const [name, id, filled] = [new Int32Array(rows.length), new Int32Array(rows.length), new Float32Array(rows.length)];
  for (let at = 0; at < rows.length; at++) {
    const row = rows[at] as number;
    const long = (end[at] as number) - (start[at] as number);
    name[at] = of.name(row);
    id[at] = Number.isNaN(of.id[row]) ? -1 : (of.id[row] as number);
    filled[at] = long > 0 ? Math.min(1, (busy[at] as number) / long) : 1;
  }
  return { start, end, name, id, count: Int32Array.from(gathered(of.count, rows)), self: gathered(of.self, rows), filled };
}

function marksOf(of: Columns, rows: readonly number[]): Marks {
  return {
    time: gathered(of.start, rows),
    name: Int32Array.from(rows, (row) => of.mark(row)),
    count: Int32Array.from(gathered(of.count, rows)),
  };
}

/** The samples of a page by counter, whose titles are those of the list of tracks. */
export function samplesOf(page: Page, place: Place | null): Map<string, Samples> {
  const from = place === null ? -Infinity : place.number * width(place.level);
  const to = place === null ? Infinity : from + width(place.level);
  const [kinds, names] = [columnTexts(page, "kind"), columnTexts(page, "name")];
  const [start, long, mean, low, high] = ["start", "duration", "value", "low", "high"].map((name) => columnNumbers(page, name)) as [Float64Array, Float64Array, Float64Array, Float64Array, Float64Array];
  const counter = kinds.texts.indexOf("counter");
  const rows = new Map<number, number[]>();
  for (let row = 0; row < page.rows; row++) {
    if (kinds.codes[row] !== counter) continue;
    const begin = start[row] as number;
    if (begin >= to || begin + (long[row] || 0) < from) continue;
    push(rows, names.codes[row] as number, row);
  }
  return new Map(
    [...rows].map(([name, those]) => {
      const begin = gathered(start, those);
      const end = gathered(long, those).map((time, at) => (begin[at] as number) + (time || 0));
      return [names.texts[name] ?? "", { start: begin, end, mean: gathered(mean, those), low: gathered(low, those), high: gathered(high, those) }];
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
