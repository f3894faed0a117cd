// Draws the bands of the stack, each between the edge of the one below and its own.

import type { Band, Edges } from "./bands.ts";
import { pointAt } from "./curves.ts";
import type { Sheet } from "../../draw/icicle.ts";
import type { Scale } from "./painting.ts";
import { LEFT } from "./painting.ts";

export interface Stacked {
  bands: readonly Band[];
  edges: Edges;
  /** The band that is pointed at. */
  lit: Band | null;
}

/** Opacity of a band, and of one beside the one that is pointed at. */
const FULL = 0.78;
const DIM = 0.22;

export function paintBands(sheet: Sheet, scale: Scale, stacked: Stacked): void {
  const { ctx, palette, width } = sheet;
  const { bands, edges, lit } = stacked;
  const from = Math.max(pointAt(edges.times, scale.time(LEFT)), 0);
  const to = pointAt(edges.times, scale.time(width)) + 1;
  if (to <= from) return;
  bands.forEach((band, at) => {
    const [upper, lower] = [edges.upper[at] ?? [], edges.upper[at - 1]];
    ctx.beginPath();
    along(sheet, scale, edges.times, upper, from, to);
    if (lower === undefined) along(sheet, scale, edges.times, [], to, from);
    else along(sheet, scale, edges.times, lower, to, from);
    ctx.closePath();
    ctx.globalAlpha = lit === null || lit.label === band.label ? FULL : DIM;
    ctx.fillStyle = palette[band.colour] ?? "gray";
    ctx.fill();
  });
  ctx.globalAlpha = 1;
}

/** Adds the steps of an edge to the path, forwards or backwards. */
function along(sheet: Sheet, scale: Scale, times: readonly number[], edge: readonly number[], from: number, to: number): void {
  const { ctx, width } = sheet;
  const x = (at: number) => Math.min(Math.max(scale.x(times[at] ?? Infinity), LEFT), width);
  const y = (at: number) => scale.y(edge[at] ?? 0);
  if (from < to) {
    for (let at = from; at < to; at++) {
      ctx.lineTo(x(at), y(at));
      ctx.lineTo(x(at + 1), y(at));
    }
  } else {
    for (let at = from - 1; at >= to; at--) {
      ctx.lineTo(x(at + 1), y(at));
      ctx.lineTo(x(at), y(at));
    }
  }
}
