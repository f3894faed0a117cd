// Finds adjacent slices in loaded tiles, for reports, where the server cannot be asked.

import { sliceOf } from "./hits.ts";
import type { Tiles } from "../tiles/joint.ts";
import type { Names } from "../drawing/names.ts";
import type { Viewport, Slice } from "../drawing/viewport.ts";
import { lastStartedBy, levelFor, tilesInSpan } from "../tiles/tiles.ts";
import type { Lane } from "../tiles/tiles.ts";

export interface Known {
  viewport: Viewport;
  store: Tiles;
  names: Names;
}

/** The loaded lanes of visible tiles, by track in order of time. */
function* lanes({ viewport, store }: Known): Generator<{ track: number; row: number; lane: Lane }> {
  const level = levelFor(viewport.pixel);
  for (const { track } of viewport.layout.lines) {
    if (track === null || track.id < 0) continue;
    for (const number of tilesInSpan(viewport.span.from, viewport.span.to, level)) {
      for (const { part } of store.found(track.id, { level, number })) {
        for (const [row, lane] of part.lanes.entries()) yield { track: track.id, row, lane };
      }
    }
  }
}

/** The loaded slice with an id. */
export function sliceOfId(known: Known, id: number): Slice | null {
  for (const { track, row, lane } of lanes(known)) {
    const at = lane.id.indexOf(id);
    if (at >= 0) return sliceOf(lane, at, known.names, track, row);
  }
  return null;
}

/** The previous, next, enclosing or first inner slice. */
export function adjacentSlice(known: Known, slice: Slice, way: string): Slice | null {
  const row = slice.row + (way === "parent" ? -1 : way === "child" ? 1 : 0);
  let found: Slice | null = null;
  for (const { track, row: own, lane } of lanes(known)) {
    if (track !== slice.track || own !== row) continue;
    const at = placeOf(lane, slice, way);
    if (at < 0 || at >= lane.start.length || (lane.id[at] as number) < 0) continue;
    const other = sliceOf(lane, at, known.names, track, row);
    if (found === null || (way === "previous" ? other.start > found.start : other.start < found.start)) {
      found = other;
    }
  }
  return found;
}

function placeOf(lane: Lane, slice: Slice, way: string): number {
  const at = lastStartedBy(lane.start, slice.start);
  if (way === "next") return at + 1;
  if (way === "previous") return lane.start[at] === slice.start ? at - 1 : at;
  if (way === "parent") return (lane.end[at] ?? -Infinity) >= slice.end ? at : -1;
  const first = lane.start[at] === slice.start ? at : at + 1;
  return (lane.start[first] ?? Infinity) < slice.end ? first : -1;
}

/** The next or previous slice whose name a search finds. */
export function nextMatch(known: Known, from: Slice | null, by: 1 | -1, isFound: (name: number) => boolean): Slice | null {
  const time = from?.start ?? known.viewport.span.from;
  let best: Slice | null = null;
  for (const { track, row, lane } of lanes(known)) {
    for (let at = 0; at < lane.start.length; at++) {
      const start = lane.start[at] as number;
      const beyond = by > 0 ? start > time || (from === null && start >= time) : start < time;
      const nearer = best === null || (by > 0 ? start < best.start : start > best.start);
      if (!beyond || !nearer || (lane.id[at] as number) < 0 || !isFound(lane.name[at] as number)) continue;
      best = sliceOf(lane, at, known.names, track, row);
    }
  }
  return best;
}
