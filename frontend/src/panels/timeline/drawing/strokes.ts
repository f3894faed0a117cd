// Draws the slices of a row: visible ones only, once per pixel if narrower, with text where it fits.

import type { NarrowSlices } from "./narrow-slices.ts";
import type { Names } from "./names.ts";
import { SOFTNESS, paintAt } from "./theme.ts";
import type { Theme } from "./theme.ts";
import { lastStartedBy } from "../tiles/tiles.ts";
import type { Lane, Marks } from "../tiles/tiles.ts";

export interface Brush {
  context: CanvasRenderingContext2D;
  theme: Theme;
  names: Names;
  /** The stretch of time that the canvas shows, its CSS pixels a ns, and its width. */
  from: number;
  scale: number;
  width: number;
  /** Device pixels to a CSS pixel. */
  ratio: number;
  /** By name: whether the search finds it; null without a search. */
  matches: ((name: number) => boolean) | null;
  narrow: NarrowSlices;
  texts: Text[];
}

interface Text {
  text: string;
  x: number;
  y: number;
  colour: string;
}

const FONT = 11;
/** Room on both sides of a text, and the least width that is worth one. */
const PAD = 4;
const LEAST = 26;
const ELLIPSIS = 9;
/** Smallest width of slices that are separated by a gap, in pixels. */
const GAPPED = 3;

/** Draws the slices of a lane that begin in [from, to), or before it if `leftmost`. */
export function strokeLane(
  brush: Brush,
  lane: Lane,
  area: { from: number; to: number; y: number; height: number; narrow: number; leftmost: boolean },
): void {
  const { context, scale, ratio, matches, theme, names } = brush;
  const first = area.leftmost ? Math.max(0, lastStartedBy(lane.start, area.from)) : after(lane, area.from);
  const pixel = 1 / ratio;
  let painted = -1;
  let reached = -Infinity;
  for (let at = first; at < lane.start.length; at++) {
    const start = lane.start[at] as number;
    if (start >= area.to) break;
    const exact = ((lane.end[at] as number) - brush.from) * scale;
    if (exact < 0) continue;
    const left = Math.max(Math.round((start - brush.from) * scale * ratio) * pixel, -2);
    let right = Math.min(Math.round(exact * ratio) * pixel, brush.width + 2);
    if (right - left < pixel) right = left + pixel;
    if (right <= reached) continue;
    reached = right;
    const name = lane.name[at] as number;
    const isFound = matches === null || matches(name);
    const softness = isFound ? softnessOf(lane.filled[at] as number) : SOFTNESS - 1;
    const paint = paintAt(names.colours[name] as number, softness);
    const long = right - left;
    if (long < GAPPED && (matches === null || !isFound)) {
      brush.narrow.paint(area.narrow, left, right, theme.pixels[paint] as number);
      continue;
    }
    if (paint !== painted) {
      context.fillStyle = theme.paints[paint]?.fill ?? "";
      painted = paint;
    }
    context.fillRect(left, area.y, long > GAPPED ? long - pixel : long, area.height);
    if (isFound && matches !== null) {
      context.fillStyle = theme.found;
      context.fillRect(left, area.y + area.height - 2, Math.max(long - pixel, pixel), 2);
      painted = -1;
    }
    if (long >= LEAST) label(brush, name, left, right, area, theme.paints[paint]?.text ?? "");
  }
}

/** The colour step for the share of time that slices cover. */
function softnessOf(filled: number): number {
  return Math.min(Math.floor((1 - filled) * SOFTNESS), SOFTNESS - 2);
}

function after(lane: Lane, time: number): number {
  let at = lastStartedBy(lane.start, time);
  while (at >= 0 && lane.start[at] === time) at -= 1;
  return at + 1;
}

function label(
  brush: Brush,
  name: number,
  left: number,
  right: number,
  area: { y: number; height: number },
  colour: string,
): void {
  const { names, context } = brush;
  const start = Math.max(left, 0) + PAD;
  const room = Math.min(right, brush.width) - start - PAD / 2;
  if (room < LEAST - 2 * PAD) return;
  const text = names.labels[name] ?? "";
  let width = names.widths[name] as number;
  if (width === 0) width = names.widths[name] = context.measureText(text).width || 1;
  const y = area.y + area.height / 2 + FONT * 0.36;
  if (width <= room) {
    brush.texts.push({ text, x: start, y, colour });
    return;
  }
  const fits = Math.floor(((room - ELLIPSIS) / width) * text.length * 0.94);
  if (fits >= 2) brush.texts.push({ text: `${text.slice(0, fits)}…`, x: start, y, colour });
}

/** Draws all texts after the slices, so that fonts are set once. */
export function writeTexts(brush: Brush): void {
  const { context, texts } = brush;
  texts.sort((one, other) => (one.colour < other.colour ? -1 : Number(one.colour > other.colour)));
  let colour = "";
  for (const text of texts) {
    if (text.colour !== colour) context.fillStyle = colour = text.colour;
    context.fillText(text.text, text.x, text.y);
  }
  texts.length = 0;
}

export function setFont(brush: Brush): void {
  brush.context.font = `${FONT}px ${brush.theme.font}`;
  brush.context.textBaseline = "alphabetic";
}

/** Marks are small triangles that hang from the top of their track. */
export function strokeMarks(brush: Brush, marks: Marks, area: { from: number; to: number; y: number }): void {
  const { context, scale } = brush;
  context.fillStyle = brush.theme.accent;
  context.beginPath();
  let reached = -Infinity;
  for (let at = Math.max(0, lastStartedBy(marks.time, area.from)); at < marks.time.length; at++) {
    const time = marks.time[at] as number;
    if (time >= area.to) break;
    const x = (time - brush.from) * scale;
    if (time < area.from || x - reached < 2) continue;
    reached = x;
    context.moveTo(x - 4, area.y);
    context.lineTo(x + 4, area.y);
    context.lineTo(x, area.y + 6);
  }
  context.fill();
}
