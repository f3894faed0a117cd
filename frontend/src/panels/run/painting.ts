// Draws the steps of a run: a dot for each, or a line from the shortest to the longest of a pixel.

import type { Palette, Sheet } from "../../draw/icicle.ts";
import type { Span } from "../../draw/span.ts";
import { ticks } from "../../draw/ticks.ts";
import { roundTime } from "../../parts/steps/stepspan.ts";
import type { Scale, Steps } from "./curve.ts";
import { ROOM } from "./curve.ts";

/** Half the width of a mark of a slow step, which may stand at the edge of the picture. */
const MARK = 5;

export interface Shown {
  steps: readonly Steps[];
  span: Span;
  scale: Scale;
  colours: ReadonlyMap<string, string>;
  /** The index of the steps that are pointed at. */
  at: number | null;
  brush: Span | null;
}

export function paint(sheet: Sheet, shown: Shown): void {
  const { ctx, palette, width, height } = sheet;
  ctx.clearRect(0, 0, width, height);
  ctx.font = `11px ${palette["font"] ?? "sans-serif"}`;
  axes(sheet, shown);
  ctx.save();
  ctx.beginPath();
  ctx.rect(ROOM.left - MARK, 0, width - ROOM.left - ROOM.right + 2 * MARK, height - ROOM.bottom + 1);
  ctx.clip();
  recorded(sheet, shown);
  const usual = shown.steps.filter((one) => !one.slow);
  for (const one of shown.steps) range(sheet, shown, one);
  for (const one of usual) dot(sheet, shown, one);
  for (const one of shown.steps) if (one.slow) slow(sheet, shown, one);
  if (shown.brush !== null) brush(sheet, shown.brush, shown.scale);
  ctx.restore();
  const pointed = shown.at === null ? undefined : shown.steps[shown.at];
  if (pointed !== undefined) halo(sheet, shown, pointed);
}

function axes(sheet: Sheet, { scale, span }: Shown): void {
  const { ctx, palette, width, height } = sheet;
  const most = scale.marks.at(-1) ?? 1;
  ctx.fillStyle = palette["muted"] ?? "gray";
  ctx.strokeStyle = palette["line"] ?? "gray";
  ctx.lineWidth = 1;
  ctx.textAlign = "right";
  ctx.textBaseline = "middle";
  for (const duration of scale.marks) {
    const y = Math.round(scale.y(duration)) + 0.5;
    ctx.beginPath();
    ctx.moveTo(ROOM.left, y);
    ctx.lineTo(width - ROOM.right, y);
    ctx.stroke();
    ctx.fillText(duration === 0 ? "0" : roundTime(duration, Math.min(duration, most)), ROOM.left - 8, y);
  }
  ctx.textAlign = "center";
  const { base, marks } = ticks(span, width - ROOM.left - ROOM.right, 110);
  for (const { time, text } of marks) {
    const x = scale.x(time);
    if (x < ROOM.left - 1 || x > width - 24) continue;
    ctx.fillRect(Math.round(x), height - ROOM.bottom, 1, 4);
    ctx.fillText(text, x, height - 8);
  }
  ctx.textAlign = "left";
  if (base !== "") ctx.fillText(base, 0, height - 8);
}

/** The times at which a profiler recorded, as bands behind the steps. */
function recorded(sheet: Sheet, { steps, scale }: Shown): void {
  const { ctx, palette, height } = sheet;
  ctx.fillStyle = palette["accent-soft"] ?? "lightblue";
  for (const one of steps) {
    if (!one.recorded) continue;
    const [left, right] = [scale.x(one.start), scale.x(one.start + one.longest)];
    ctx.fillRect(left - 1, 0, Math.max(right - left, 1) + 2, height - ROOM.bottom);
  }
}

function colourOf(palette: Palette, shown: Shown, one: Steps): string {
  return palette[shown.colours.get(one.kind) ?? "other"] ?? "gray";
}

function range(sheet: Sheet, shown: Shown, one: Steps): void {
  const { ctx, palette } = sheet;
  const { scale } = shown;
  const x = scale.x(one.start);
  ctx.strokeStyle = colourOf(palette, shown, one);
  ctx.globalAlpha = 0.45;
  ctx.lineWidth = one.count === 1 ? 2 : 1.5;
  ctx.beginPath();
  if (one.count === 1) {
    ctx.moveTo(x, scale.y(one.longest));
    ctx.lineTo(scale.x(one.start + one.longest), scale.y(one.longest));
  } else {
    ctx.moveTo(x, scale.y(one.longest));
    ctx.lineTo(x, Math.max(scale.y(one.shortest), scale.y(one.longest) + 1));
  }
  ctx.stroke();
  ctx.globalAlpha = 1;
}

function dot(sheet: Sheet, shown: Shown, one: Steps): void {
  const { ctx, palette } = sheet;
  ctx.fillStyle = colourOf(palette, shown, one);
  ctx.beginPath();
  ctx.arc(shown.scale.x(one.start), shown.scale.y(one.median), one.count === 1 ? 2 : 1.4, 0, 2 * Math.PI);
  ctx.fill();
}

/** Slow steps stand out: a stem from the foot of the picture, and a ring around the longest. */
function slow(sheet: Sheet, shown: Shown, one: Steps): void {
  const { ctx, palette, height } = sheet;
  const [x, y] = [shown.scale.x(one.start), shown.scale.y(one.longest)];
  ctx.strokeStyle = palette["bad"] ?? "red";
  ctx.globalAlpha = 0.25;
  ctx.lineWidth = 1;
  ctx.beginPath();
  ctx.moveTo(x, height - ROOM.bottom);
  ctx.lineTo(x, y);
  ctx.stroke();
  ctx.globalAlpha = 1;
  ctx.fillStyle = colourOf(palette, shown, one);
  ctx.lineWidth = 1.5;
  ctx.beginPath();
  ctx.arc(x, y, 3.5, 0, 2 * Math.PI);
  ctx.fill();
  ctx.stroke();
}

function brush(sheet: Sheet, span: Span, scale: Scale): void {
  const { ctx, palette, height } = sheet;
  const [left, right] = [scale.x(span.from), scale.x(span.to)];
  ctx.fillStyle = palette["accent"] ?? "blue";
  ctx.globalAlpha = 0.15;
  ctx.fillRect(left, 0, right - left, height - ROOM.bottom);
  ctx.globalAlpha = 1;
}

function halo(sheet: Sheet, shown: Shown, one: Steps): void {
  const { ctx, palette } = sheet;
  ctx.strokeStyle = palette["text"] ?? "black";
  ctx.lineWidth = 1.5;
  ctx.beginPath();
  ctx.arc(shown.scale.x(one.start), shown.scale.y(one.longest), 6, 0, 2 * Math.PI);
  ctx.stroke();
}
