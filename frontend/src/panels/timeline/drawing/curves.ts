// Draws counters as filled curves, with the lowest and highest value of each pixel.

import { lastStartedBy } from "../tiles/tiles.ts";
import type { Samples } from "../tiles/tiles.ts";
import type { Brush } from "./strokes.ts";

export interface CurveArea {
  from: number;
  to: number;
  y: number;
  height: number;
  /** The value at the top. */
  most: number;
  kind: string;
}

/** Whether pixels show the mean or the maximum. */
function isRate(kind: string): boolean {
  return kind === "utilization" || kind === "flops";
}

/** Draws the samples of a counter in the time [from, to). */
export function strokeCurve(brush: Brush, samples: Samples, area: CurveArea): void {
  const { context, scale, theme } = brush;
  const colours = theme.curve[area.kind] ?? theme.curve["counter"];
  if (colours === undefined || samples.start.length === 0) return;
  const base = area.y + area.height;
  const values = isRate(area.kind) ? samples.mean : samples.high;
  const heightOf = (value: number) =>
    Math.max(0, Math.min(value / (area.most || 1), 1)) * area.height;
  const fill = new Path2D();
  const line = new Path2D();
  const unknown = new Path2D();
  const sharp = (x: number) => Math.round(x * brush.ratio) / brush.ratio;
  let open: number | null = null;
  const close = () => {
    if (open !== null) fill.lineTo(open, base);
    open = null;
  };
  for (let at = Math.max(0, lastStartedBy(samples.start, area.from)); at < samples.start.length; at++) {
    const start = samples.start[at] as number;
    if (start >= area.to) break;
    const value = values[at] as number;
    const left = sharp((Math.max(start, area.from) - brush.from) * scale);
    const right = sharp((Math.min(samples.end[at] as number, area.to) - brush.from) * scale);
    if (right < left) continue;
    if (Number.isNaN(value)) {
      close();
      if (area.kind === "flops") unknown.rect(left, area.y, right - left, area.height); // and not as 0
      continue;
    }
    const top = base - heightOf(value);
    if (open === null) {
      fill.moveTo(left, base);
      line.moveTo(left, top);
    }
    for (const path of [fill, line]) {
      path.lineTo(left, top);
      path.lineTo(right, top);
    }
    open = right;
  }
  close();
  context.fillStyle = theme.sunken;
  context.fill(unknown);
  context.fillStyle = colours.fill;
  context.fill(fill);
  context.strokeStyle = colours.line;
  context.lineWidth = 1;
  context.stroke(line);
}

/** The value of a counter at a time; NaN where it is unknown, null where it has no sample. */
export function valueAt(
  samples: readonly Samples[],
  time: number,
): { value: number; low: number; high: number } | null {
  for (const one of samples) {
    const at = lastStartedBy(one.start, time);
    if (at < 0 || (one.end[at] as number) < time) continue;
    const value = one.mean[at] as number;
    return { value, low: one.low[at] as number, high: one.high[at] as number };
  }
  return null;
}
