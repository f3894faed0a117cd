// Draws the critical path: a band of all of it, the lanes it runs over, and where it changes lanes.

import type { Palette } from "../../draw/icicle.ts";
import type { Band, Segment } from "./band.ts";
import { edgesOf, KIND_COLOURS, placeOf } from "./band.ts";

export const RULER = 18;
export const PATH = 26;
export const LANE = 22;
const GAP = 10;
/** The width of the names of lanes. */
export const NAMES = 110;

export interface Shown {
  band: Band;
  from: number;
  to: number;
  width: number;
  chosen: number;
  hovered: number;
  /** The stretch that the pointer is choosing, in pixels; null if none. */
  brush: readonly [number, number] | null;
  ticks: readonly { at: number; text: string }[];
}

export function heightOf(lanes: number): number {
  return RULER + PATH + GAP + lanes * LANE + 4;
}

/** The lane at a height: -1 is the band of the whole path; null is neither. */
export function laneAt(y: number, lanes: number): number | null {
  if (y >= RULER && y < RULER + PATH) return -1;
  const lane = Math.floor((y - RULER - PATH - GAP) / LANE);
  return lane >= 0 && lane < lanes ? lane : null;
}

function laneTop(lane: number): number {
  return RULER + PATH + GAP + lane * LANE;
}

export function paint(ctx: CanvasRenderingContext2D, palette: Palette, shown: Shown): void {
  const { band, width } = shown;
  const height = heightOf(band.lanes.length);
  const of = (name: string) => palette[name] ?? "gray";
  ctx.clearRect(0, 0, NAMES + width, height);
  ctx.font = `12px ${of("font")}`;
  ctx.textBaseline = "middle";
  grounds(ctx, of, shown);
  ctx.save();
  ctx.beginPath();
  ctx.rect(NAMES, 0, width, height);
  ctx.clip();
  ctx.translate(NAMES, 0);
  edges(ctx, of, shown);
  for (const segment of band.longestLast) {
    ctx.fillStyle = of(KIND_COLOURS[segment.kind] ?? "other");
    bar(ctx, shown, segment, RULER, PATH, 1);
    bar(ctx, shown, segment, laneTop(segment.lane) + 3, LANE - 6, segment.count > 1 ? fill(segment) : 1);
  }
  ctx.globalAlpha = 1;
  marked(ctx, of, shown);
  ctx.restore();
}

/** How much of its stretch a row of several segments takes: it is drawn that strong. */
function fill({ start, end, time }: Segment): number {
  return end > start ? Math.max(0.35, Math.min(1, time / (end - start))) : 1;
}

function grounds(ctx: CanvasRenderingContext2D, of: (name: string) => string, shown: Shown): void {
  const { band, width, ticks } = shown;
  ctx.fillStyle = of("muted");
  ctx.fillText("whole path", 0, RULER + PATH / 2);
  for (const [lane, name] of band.lanes.entries()) {
    const top = laneTop(lane);
    ctx.fillStyle = of("sunken");
    ctx.fillRect(NAMES, top + 3, width, LANE - 6);
    ctx.fillStyle = of("muted");
    ctx.fillText(name.length > 16 ? `${name.slice(0, 15)}…` : name, 0, top + LANE / 2);
  }
  ctx.textAlign = "center";
  for (const { at, text } of ticks) {
    const x = NAMES + at * width;
    ctx.fillStyle = of("line-strong");
    ctx.fillRect(Math.round(x), RULER - 4, 1, 4);
    ctx.fillStyle = of("muted");
    if (at > 0.03 && at < 0.97) ctx.fillText(text, x, 7);
  }
  ctx.textAlign = "start";
}

function edges(ctx: CanvasRenderingContext2D, of: (name: string) => string, { band, from, to, width }: Shown): void {
  ctx.fillStyle = of("line-strong");
  ctx.globalAlpha = 0.6;
  for (const { x, top, bottom } of edgesOf(band, from, to, width)) {
    ctx.fillRect(x, laneTop(top) + LANE / 2, 1, (bottom - top) * LANE);
  }
}

function bar(ctx: CanvasRenderingContext2D, shown: Shown, segment: Segment, top: number, high: number, strength: number): void {
  const { from, to, width } = shown;
  if (segment.end < from || segment.start > to) return;
  const left = Math.max(0, placeOf(segment.start, from, to, width));
  const right = Math.min(width, placeOf(segment.end, from, to, width));
  ctx.globalAlpha = strength;
  ctx.fillRect(left, top, Math.max(right - left, 0.75), high);
}

function marked(ctx: CanvasRenderingContext2D, of: (name: string) => string, shown: Shown): void {
  const { band, from, to, width, chosen, hovered, brush } = shown;
  for (const [at, colour] of [[hovered, "text"], [chosen, "focus"]] as const) {
    const segment = band.segments[at];
    if (segment === undefined) continue;
    const [left, right] = [segment.start, segment.end].map((instant) => placeOf(instant, from, to, width)) as [number, number];
    ctx.strokeStyle = of(colour);
    ctx.lineWidth = 2;
    ctx.strokeRect(left - 1, laneTop(segment.lane) + 2, Math.max(right - left, 1) + 2, LANE - 4);
    ctx.strokeRect(left - 1, RULER - 1, Math.max(right - left, 1) + 2, PATH + 2);
  }
  if (brush !== null) {
    ctx.globalAlpha = 0.25;
    ctx.fillStyle = of("accent");
    ctx.fillRect(Math.min(...brush), 0, Math.abs(brush[1] - brush[0]), heightOf(band.lanes.length));
    ctx.globalAlpha = 1;
  }
}
