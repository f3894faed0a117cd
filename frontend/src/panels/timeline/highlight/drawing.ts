// Draws the slices of a number over the dimmed picture, and its stretches of time of no slice.

import { ROW } from "../tracks/layout.ts";
import type { Line } from "../tracks/layout.ts";
import type { Brush } from "../drawing/strokes.ts";
import { strokeLane, writeTexts } from "../drawing/strokes.ts";
import { RULER } from "../drawing/viewport.ts";
import type { Viewport } from "../drawing/viewport.ts";
import { lastStartedBy } from "../tiles/tiles.ts";
import type { Lane } from "../tiles/tiles.ts";
import { joinedSpans } from "./places.ts";
import type { Highlighted } from "./places.ts";

/** Narrowest mark below a slice, and narrowest stretch that is drawn over all tracks, in pixels. */
const LEAST = 2;
const MARK = 3;

/** Draws slices as they are without a number, each with a mark below it. */
export function strokeHighlighted(brush: Brush, viewport: Viewport, highlighted: Highlighted, lines: readonly Line[]): void {
  const { narrow } = brush;
  const bright: Brush = { ...brush, matches: null };
  const { from, to } = viewport.span;
  narrow.begin(viewport.width, brush.ratio);
  for (const line of lines) {
    const lanes = line.track === null ? undefined : highlighted.lanes.get(line.track.id);
    for (const [row, lane] of (lanes ?? []).entries()) {
      if (lane === undefined || row >= line.rows) continue;
      const y = viewport.rowsTop(line) + 2 + row * ROW;
      strokeLane(bright, lane, { from, to, y, height: ROW - 1, narrow: narrow.row(y, ROW - 1), leftmost: true });
    }
  }
  narrow.put(brush.context);
  writeTexts(brush);
  for (const line of lines) {
    const lanes = line.track === null ? undefined : highlighted.lanes.get(line.track.id);
    for (const [row, lane] of (lanes ?? []).entries()) {
      // slices on rows that are folded have their mark below the last row
      if (lane !== undefined) strokeMarks(brush, viewport, lane, viewport.rowsTop(line) + Math.min(row + 1, line.rows) * ROW - 1);
    }
  }
}

function strokeMarks({ context, theme }: Brush, viewport: Viewport, lane: Lane, y: number): void {
  context.fillStyle = theme.found;
  let reached = -Infinity;
  for (let at = Math.max(0, lastStartedBy(lane.start, viewport.span.from)); at < lane.start.length; at++) {
    const start = lane.start[at] as number;
    if (start > viewport.span.to) break;
    const left = viewport.x(start);
    const right = Math.max(viewport.x(lane.end[at] as number), left + LEAST);
    if (right <= reached + 0.5) continue;
    context.fillRect(Math.max(left, reached), y, right - Math.max(left, reached), MARK - 1);
    reached = right;
  }
}

/** Draws stretches as a strip below the ruler, and over all tracks where they are wide. */
export function strokeStretches({ context, theme }: Brush, viewport: Viewport, { stretches }: Highlighted): void {
  if (stretches.start.length === 0) return;
  context.fillStyle = theme.found;
  for (const { from, to } of joinedSpans(stretches, viewport.span, viewport.pixel)) {
    const left = viewport.x(from);
    const wide = Math.max(viewport.x(to) - left, 1);
    context.fillRect(left, RULER - MARK, wide, MARK);
    if (wide < LEAST) continue;
    context.globalAlpha = 0.12;
    context.fillRect(left, RULER, wide, viewport.height);
    context.globalAlpha = 1;
  }
}
