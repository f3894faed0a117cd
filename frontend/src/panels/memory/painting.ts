// Draws the curve of a device: allocated as an area or as bands, reserved as a dashed line.

import type { Sheet } from "../../draw/icicle.ts";
import type { Span } from "../../draw/span.ts";
import { ticks } from "../../draw/ticks.ts";
import { bytesText } from "../../units.ts";
import type { Stacked } from "./bands-painting.ts";
import { paintBands } from "./bands-painting.ts";
import type { Curve } from "./curves.ts";
import { pointAt, sizes } from "./curves.ts";

export const LEFT = 72;
const BOTTOM = 20;
const TOP = 8;

export interface Shown {
  curve: Curve;
  /** The bands of the area; null for one area. */
  stacked: Stacked | null;
  span: Span;
  brush: Span | null;
  /** The time whose holders are listed. */
  at: number | null;
  /** The time that is compared with. */
  pin: number | null;
  pointer: number | null;
  /** Whether the curve is the chosen one. */
  chosen: boolean;
}

export interface Scale {
  x: (time: number) => number;
  y: (size: number) => number;
  time: (x: number) => number;
  size: (y: number) => number;
  most: number;
}

export function scaleOf(shown: Pick<Shown, "curve" | "span">, width: number, height: number): Scale {
  const { curve, span } = shown;
  const room = Math.max(width - LEFT, 1);
  const highest = Math.max(curve.peak.allocated, ...(curve.reserved ?? [0]), 1);
  const most = highest * 1.06;
  const perNs = room / (span.to - span.from);
  return {
    x: (time) => LEFT + (time - span.from) * perNs,
    y: (size) => height - BOTTOM - (size / most) * (height - BOTTOM - TOP),
    time: (x) => span.from + Math.min(Math.max(x - LEFT, 0), room) / perNs,
    size: (y) => ((height - BOTTOM - y) / (height - BOTTOM - TOP)) * most,
    most,
  };
}

export function paint(sheet: Sheet, shown: Shown): void {
  const { ctx, palette, width, height } = sheet;
  const scale = scaleOf(shown, width, height);
  ctx.clearRect(0, 0, width, height);
  ctx.font = `11px ${palette["font"] ?? "sans-serif"}`;
  axes(sheet, shown, scale);
  ctx.save();
  ctx.beginPath();
  ctx.rect(LEFT, 0, width - LEFT, height - BOTTOM + 1);
  ctx.clip();
  if (shown.brush !== null) band(sheet, shown.brush, scale);
  if (shown.stacked !== null) paintBands(sheet, scale, shown.stacked);
  area(sheet, shown, scale);
  if (shown.curve.reserved !== null) reserved(sheet, shown, scale);
  ctx.restore();
  peak(sheet, shown, scale);
  if (shown.pin !== null) line(sheet, scale.x(shown.pin), palette["accent"], [4, 3], 2);
  if (shown.at !== null) line(sheet, scale.x(shown.at), palette["accent"], [], 2);
  if (shown.pointer !== null) line(sheet, scale.x(shown.pointer), palette["line-strong"], [], 1);
}

function axes(sheet: Sheet, shown: Shown, scale: Scale): void {
  const { ctx, palette, width, height } = sheet;
  ctx.fillStyle = palette["muted"] ?? "gray";
  ctx.strokeStyle = palette["line"] ?? "gray";
  ctx.lineWidth = 1;
  ctx.textAlign = "right";
  ctx.textBaseline = "middle";
  for (const size of sizes(scale.most, Math.max(Math.floor(height / 44), 2))) {
    const y = Math.round(scale.y(size)) + 0.5;
    ctx.beginPath();
    ctx.moveTo(LEFT, y);
    ctx.lineTo(width, y);
    ctx.stroke();
    ctx.fillText(size === 0 ? "0" : bytesText(size), LEFT - 8, y);
  }
  ctx.textAlign = "center";
  const { base, marks } = ticks(shown.span, width - LEFT, 110);
  for (const { time, text } of marks) {
    const x = scale.x(time);
    if (x < LEFT + 24 || x > width - 24) continue;
    ctx.fillRect(Math.round(x), height - BOTTOM, 1, 4);
    ctx.fillText(text, x, height - 7);
  }
  ctx.textAlign = "left";
  if (base !== "") ctx.fillText(base, 0, height - 7);
}

function band(sheet: Sheet, brush: Span, scale: Scale): void {
  const { ctx, palette, height } = sheet;
  const [left, right] = [scale.x(brush.from), scale.x(brush.to)];
  ctx.fillStyle = palette["accent-soft"] ?? "lightblue";
  ctx.fillRect(left, 0, right - left, height - BOTTOM);
  ctx.fillStyle = palette["accent"] ?? "blue";
  ctx.fillRect(left - 1, 0, 1, height - BOTTOM);
  ctx.fillRect(right, 0, 1, height - BOTTOM);
}

/** Adds the visible steps of a curve to the canvas path. */
function trace(sheet: Sheet, shown: Shown, scale: Scale, values: readonly number[]): { first: number; last: number } | null {
  const { ctx, width } = sheet;
  const { times } = shown.curve;
  const from = Math.max(pointAt(times, shown.span.from), 0);
  const to = Math.min(pointAt(times, shown.span.to) + 1, times.length);
  if (to <= from) return null;
  const first = Math.max(scale.x(times[from] ?? 0), LEFT);
  ctx.beginPath();
  let y = scale.y(values[from] ?? 0);
  ctx.moveTo(first, y);
  for (let at = from + 1; at < to; at++) {
    const x = scale.x(times[at] ?? 0);
    ctx.lineTo(x, y);
    y = scale.y(values[at] ?? 0);
    ctx.lineTo(x, y);
  }
  ctx.lineTo(width, y);
  return { first, last: width };
}

function area(sheet: Sheet, shown: Shown, scale: Scale): void {
  const { ctx, palette } = sheet;
  ctx.strokeStyle = palette["memory"] ?? "blue";
  ctx.fillStyle = palette["memory"] ?? "blue";
  ctx.lineWidth = shown.stacked === null ? 1.5 : 1;
  ctx.lineJoin = "round";
  const drawn = trace(sheet, shown, scale, shown.curve.allocated);
  if (drawn === null) return;
  ctx.stroke();
  if (shown.stacked !== null) return;
  ctx.lineTo(drawn.last, scale.y(0));
  ctx.lineTo(drawn.first, scale.y(0));
  ctx.globalAlpha = 0.2;
  ctx.fill();
  ctx.globalAlpha = 1;
}

function reserved(sheet: Sheet, shown: Shown, scale: Scale): void {
  const { ctx, palette } = sheet;
  ctx.strokeStyle = palette["muted"] ?? "gray";
  ctx.lineWidth = 1;
  ctx.setLineDash([5, 3]);
  if (trace(sheet, shown, scale, shown.curve.reserved ?? []) !== null) ctx.stroke();
  ctx.setLineDash([]);
}

function peak(sheet: Sheet, shown: Shown, scale: Scale): void {
  const { ctx, palette, width } = sheet;
  const { time, allocated } = shown.curve.peak;
  const [x, y] = [scale.x(time), scale.y(allocated)];
  if (x < LEFT || x > width) return;
  ctx.fillStyle = palette["memory"] ?? "blue";
  ctx.beginPath();
  ctx.arc(x, y, 3.5, 0, 2 * Math.PI);
  ctx.fill();
  ctx.fillStyle = palette["text"] ?? "black";
  ctx.textBaseline = "middle";
  const text = `peak ${bytesText(allocated)}`;
  const isRight = x + ctx.measureText(text).width + 12 > width;
  ctx.textAlign = isRight ? "right" : "left";
  const place: [number, number] = [isRight ? x - 8 : x + 8, Math.max(y, 7)];
  // A rim in the colour of the ground keeps the words apart from the curve behind them.
  ctx.strokeStyle = palette["bg"] ?? "white";
  ctx.lineWidth = 4;
  ctx.strokeText(text, ...place);
  ctx.fillText(text, ...place);
}

function line(sheet: Sheet, x: number, colour: string | undefined, dash: number[], wide: number): void {
  const { ctx, width, height } = sheet;
  if (x < LEFT || x > width) return;
  ctx.strokeStyle = colour ?? "black";
  ctx.lineWidth = wide;
  ctx.setLineDash(dash);
  ctx.beginPath();
  ctx.moveTo(x, 0);
  ctx.lineTo(x, height - BOTTOM);
  ctx.stroke();
  ctx.setLineDash([]);
}
