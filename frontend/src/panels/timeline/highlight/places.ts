// The slices and stretches of a number of the advice, by row of the timeline and in order of time (pure).

import type { NumberSlices } from "../../../data/numbers.ts";
import type { Span } from "../../../draw/span.ts";
import type { Names } from "../drawing/names.ts";
import type { Slice } from "../drawing/viewport.ts";
import { cellReader } from "../tiles/cell-reader.ts";
import { lastStartedBy } from "../tiles/tiles.ts";
import type { Lane } from "../tiles/tiles.ts";

/** A slice, or a stretch of time of no slice. */
export interface Place extends Span {
  slice: Slice | null;
}

export interface Highlighted {
  number: NumberSlices;
  /** In order of time. */
  places: readonly Place[];
  /** The slices of each row, by track. */
  lanes: ReadonlyMap<number, readonly (Lane | undefined)[]>;
  stretches: { start: Float64Array; end: Float64Array };
}

/** `placed` moves a slice to the row on which it is shown. */
export function highlightedOf(number: NumberSlices, names: Names, placed: (slice: Slice) => Slice): Highlighted {
  const slices = slicesOf(number).map(placed);
  const read = cellReader(number.stretches);
  const start = Float64Array.from({ length: number.stretches.rows }, (_, row) => read.number("start", row));
  const end = start.map((time, row) => time + read.number("duration", row));
  const places: Place[] = [
    ...slices.map((slice) => ({ from: slice.start, to: slice.end, slice })),
    ...Array.from(start, (from, at) => ({ from, to: end[at] ?? from, slice: null })),
  ].sort((one, other) => one.from - other.from);
  return { number, places, lanes: lanesOf(slices, names), stretches: { start, end } };
}

function slicesOf(number: NumberSlices): Slice[] {
  const read = cellReader(number.slices);
  return Array.from({ length: number.slices.rows }, (_, row) => {
    const start = read.number("start", row);
    return {
      id: read.number("id", row),
      name: read.text("name", row),
      category: read.text("category", row),
      track: read.number("track", row),
      row: read.number("row", row),
      start,
      end: start + (read.number("duration", row) || 0),
      self: Number.NaN,
      count: 1,
    };
  });
}

function lanesOf(slices: readonly Slice[], names: Names): Map<number, (Lane | undefined)[]> {
  const rows = new Map<number, Slice[][]>();
  for (const slice of slices) {
    const track = rows.get(slice.track) ?? [];
    rows.set(slice.track, track);
    (track[slice.row] ??= []).push(slice);
  }
  const lanes = new Map<number, (Lane | undefined)[]>();
  for (const [track, found] of rows) {
    lanes.set(track, Array.from(found, (row) => (row === undefined ? undefined : laneOf(row, names))));
  }
  return lanes;
}

function laneOf(slices: readonly Slice[], names: Names): Lane {
  return {
    start: Float64Array.from(slices, (slice) => slice.start),
    end: Float64Array.from(slices, (slice) => slice.end),
    name: Int32Array.from(slices, (slice) => names.code(slice.name, slice.category)),
    id: Float64Array.from(slices, (slice) => slice.id),
    count: new Int32Array(slices.length).fill(1),
    self: new Float64Array(slices.length).fill(Number.NaN),
    filled: new Float32Array(slices.length).fill(1),
  };
}

/** From the first to the last place; null without any. */
export function wholeSpan({ places }: Highlighted): Span | null {
  const [first] = places;
  if (first === undefined) return null;
  return { from: first.from, to: places.reduce((last, { to }) => Math.max(last, to), first.to) };
}

/**
 * The next or previous place: from the one that was gone to last, as long as it is in the picture, else
 * from the middle of the picture. -1 if there is none.
 */
export function placeBeside({ places }: Highlighted, at: number, span: Span, by: 1 | -1): number {
  const known = places[at];
  if (known !== undefined && known.from < span.to && known.to > span.from) {
    return places[at + by] === undefined ? -1 : at + by;
  }
  const middle = (span.from + span.to) / 2;
  return by > 0
    ? places.findIndex(({ from }) => from >= middle)
    : places.findLastIndex(({ from }) => from < middle);
}

/** The spans that overlap a stretch of time; those that touch at the given scale are one. */
export function joinedSpans({ start, end }: Highlighted["stretches"], span: Span, pixel: number): Span[] {
  const found: { from: number; to: number }[] = [];
  for (let at = Math.max(0, lastStartedBy(start, span.from)); at < start.length; at++) {
    const [from, to] = [start[at] as number, end[at] as number];
    if (from > span.to) break;
    if (to < span.from) continue;
    const last = found.at(-1);
    if (last !== undefined && from - last.to < pixel) last.to = Math.max(last.to, to);
    else found.push({ from, to });
  }
  return found;
}
