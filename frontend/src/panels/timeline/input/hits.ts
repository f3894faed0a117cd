// Finds the slice or counter under the pointer.

import { ROW } from "../tracks/layout.ts";
import type { Names } from "../drawing/names.ts";
import { levelFor, lastStartedBy, width } from "../tiles/tiles.ts";
import type { Lane } from "../tiles/tiles.ts";
import { valueAt } from "../drawing/curves.ts";
import type { Viewport, Slice } from "../drawing/viewport.ts";
import type { Tiles } from "../tiles/joint.ts";
import type { Track } from "../tracks/tracks.ts";

/** Tolerance around narrow slices, in CSS pixels. */
const NEAR = 3;

export function sliceAt(viewport: Viewport, store: Tiles, names: Names, x: number, y: number): Slice | null {
  const line = viewport.lineAt(y);
  if (line?.track === null || line === undefined || line.track.id < 0) return null;
  const row = Math.floor((y - viewport.rowsTop(line) - 1) / ROW);
  if (row < 0 || row >= line.rows) return null;
  const time = viewport.time(x);
  const level = levelFor(viewport.pixel);
  const place = { level, number: Math.floor(time / width(level)) };
  for (const { part } of store.found(line.track.id, place)) {
    const lane = part.lanes[row];
    const at = lane === undefined ? -1 : nearest(lane, time, NEAR * viewport.pixel);
    if (lane !== undefined && at >= 0) return sliceOf(lane, at, names, line.track.id, row);
  }
  return null;
}

/** The slice at a time, else the closest within the tolerance. */
function nearest(lane: Lane, time: number, room: number): number {
  const at = lastStartedBy(lane.start, time);
  const gap = at < 0 ? Infinity : time - (lane.end[at] as number);
  if (gap <= 0) return at;
  const next = at + 1 < lane.start.length ? (lane.start[at + 1] as number) - time : Infinity;
  if (Math.min(gap, next) > room) return -1;
  return gap <= next ? at : at + 1;
}

export function sliceOf(lane: Lane, at: number, names: Names, track: number, row: number): Slice {
  const name = lane.name[at] as number;
  return {
    id: lane.id[at] as number,
    name: names.texts[name] ?? "",
    category: names.categories[name] ?? "",
    track,
    row,
    start: lane.start[at] as number,
    end: lane.end[at] as number,
    self: lane.self[at] as number,
    count: lane.count[at] as number,
  };
}

/** A counter under the pointer, and its value there. */
export function counterAt(
  viewport: Viewport,
  store: Tiles,
  x: number,
  y: number,
): { track: Track; time: number; value: number; low: number; high: number } | null {
  const track = viewport.lineAt(y)?.track;
  if (!track || track.id >= 0) return null;
  const time = viewport.time(x);
  const level = levelFor(viewport.pixel);
  const samples = store.samples(track.title, { level, number: Math.floor(time / width(level)) }, track.id);
  const found = valueAt(samples, time);
  return found === null ? null : { track, time, ...found };
}
