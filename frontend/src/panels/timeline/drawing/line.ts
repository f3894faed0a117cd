// Draws a line of the timeline: the heading of a group, the slices of a track, or a counter.

import { ROW } from "../tracks/layout.ts";
import type { Line } from "../tracks/layout.ts";
import { mostOf } from "../tracks/tracks.ts";
import type { Tiles } from "../tiles/joint.ts";
import { levelFor, tilesInSpan, width } from "../tiles/tiles.ts";
import type { Place } from "../tiles/tiles.ts";
import { strokeCurve } from "./curves.ts";
import { strokeAxis } from "./ruler.ts";
import { strokeLane, strokeMarks, writeTexts } from "./strokes.ts";
import type { Brush } from "./strokes.ts";
import type { Viewport } from "./viewport.ts";

/** The position of a tile: its top, pixel rows, and whether it is the leftmost. */
interface Where {
  y: number;
  rows: readonly number[];
  leftmost: boolean;
}

export function strokeLine(brush: Brush, viewport: Viewport, store: Tiles, line: Line): void {
  const y = viewport.top(line);
  const { context, narrow, theme } = brush;
  if (line.kind === "group") {
    context.fillStyle = theme.sunken;
    context.fillRect(0, y, viewport.width, line.height);
    if (line.group.clock !== undefined) strokeAxis(brush, viewport, line.group.clock, y);
    context.fillStyle = theme.strong;
    if (line.group.leads === true) context.fillRect(0, y, viewport.width, 1);
    if (line.group.clock !== undefined) context.fillRect(0, y + line.height - 1, viewport.width, 1);
    return;
  }
  context.fillStyle = theme.line;
  context.fillRect(0, y + line.height - 1, viewport.width, 1);
  const slices = line.track !== null && line.track.id >= 0;
  const rows = Array.from({ length: slices ? line.rows : 0 }, (_, row) => narrow.row(y + line.head + 2 + row * ROW, ROW - 1));
  const level = levelFor(viewport.pixel);
  for (const [at, number] of tilesInSpan(viewport.span.from, viewport.span.to, level).entries()) {
    strokeTile(brush, store, line, { y: y + line.head + 2, rows, leftmost: at === 0 }, { level, number });
  }
  writeTexts(brush);
}

function strokeTile(brush: Brush, store: Tiles, line: Line, { y, rows, leftmost }: Where, place: Place): void {
  const from = place.number * width(place.level);
  const to = from + width(place.level);
  const { track } = line;
  if (track === null) return;
  if (track.id < 0) {
    const area = { from, to, y: y + 2, height: line.height - 6, most: mostOf(track), kind: track.kind };
    for (const samples of store.samples(track.title, place, track.id)) strokeCurve(brush, samples, area);
    return;
  }
  for (const found of store.found(track.id, place)) {
    const first = Math.max(from, found.from);
    const last = Math.min(to, found.to);
    for (const [row, narrow] of rows.entries()) {
      const lane = found.part.lanes[row];
      const at = { from: first, to: last, y: y + row * ROW, height: ROW - 1, narrow };
      if (lane) strokeLane(brush, lane, { ...at, leftmost: leftmost && first === from });
    }
    if (found.part.marks) strokeMarks(brush, found.part.marks, { from: first, to: last, y: y - 2 });
  }
}
