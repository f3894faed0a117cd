// Draws the arrows of the chosen slice: launches, forward and backward, waits and causes.

import { ROW } from "../tracks/layout.ts";
import type { Flow, Viewport } from "./viewport.ts";
import { RULER } from "./viewport.ts";
import type { Brush } from "./strokes.ts";

/** An end of an arrow on the canvas, and the slice that it leads to. */
export interface ArrowEnd {
  x: number;
  y: number;
  slice: number;
}

const HEAD = 6;

/** Height of the middle of a slice; null if its track is in no line. */
function heightOf(viewport: Viewport, track: number, row: number): number | null {
  const line = viewport.lineOf(track);
  if (line === undefined) return null;
  const y = viewport.rowsTop(line) + Math.min(row, Math.max(line.rows - 1, 0)) * ROW + ROW / 2;
  return Math.max(y, viewport.ceiling(line)); // at the edge of what is pinned above it
}

export function strokeFlows(brush: Brush, viewport: Viewport, flows: readonly Flow[]): ArrowEnd[] {
  const { context, theme } = brush;
  const ends: ArrowEnd[] = [];
  context.save();
  context.beginPath();
  context.rect(0, RULER, viewport.width, viewport.height - RULER);
  context.clip();
  for (const flow of flows) {
    const [y1, y2] = [heightOf(viewport, flow.track, flow.row), heightOf(viewport, flow.toTrack, flow.toRow)];
    if (y1 === null || y2 === null) continue;
    const [x1, x2] = [viewport.x(flow.start), viewport.x(flow.toTime)];
    ends.push({ x: x1, y: y1, slice: flow.id }, { x: x2, y: y2, slice: flow.to });
    const path = arrow(x1, y1, x2, y2);
    context.globalAlpha = 0.55;
    context.lineWidth = 3.5;
    context.strokeStyle = theme.surface;
    context.stroke(path);
    context.globalAlpha = 1;
    context.lineWidth = 1.5;
    context.strokeStyle = theme.accent;
    context.setLineDash(flow.name === "launch" ? [] : flow.name === "backward" ? [6, 3] : [2, 3]);
    context.stroke(path);
    context.setLineDash([]);
    context.fillStyle = theme.accent;
    context.fill(head(x2, y2, x2 >= x1 || Math.abs(y2 - y1) > 2 * ROW ? 1 : -1));
    context.beginPath();
    context.arc(x1, y1, 2.5, 0, 2 * Math.PI);
    context.fill();
  }
  context.restore();
  return ends;
}

function arrow(x1: number, y1: number, x2: number, y2: number): Path2D {
  const path = new Path2D();
  // coordinates far outside of the picture lose their precision when they are drawn
  const near = (x: number) => Math.min(Math.max(x, -20_000), 20_000);
  const [left, right] = [near(x1), near(x2)];
  const bend = Math.min(Math.max(Math.abs(right - left) / 2, 12), 80);
  path.moveTo(left, y1);
  path.bezierCurveTo(left + bend, y1, right - bend, y2, right - HEAD / 2, y2);
  return path;
}

function head(x: number, y: number, way: number): Path2D {
  const path = new Path2D();
  path.moveTo(x, y);
  path.lineTo(x - way * HEAD, y - HEAD / 2 - 1);
  path.lineTo(x - way * HEAD, y + HEAD / 2 + 1);
  path.closePath();
  return path;
}

export function endAt(ends: readonly ArrowEnd[], x: number, y: number): ArrowEnd | undefined {
  return ends.find((end) => Math.hypot(end.x - x, end.y - y) <= 7);
}
