// Draws a tree as an icicle on a canvas: the root on top, widths by weight.

import type { Box } from "./tree.ts";

export const ROW = 19;
/** Narrowest box with text, in pixels. */
const LEAST_TEXT = 26;
const PAD = 5;
/** Narrowest box with an edge, in pixels; edges of many narrow boxes would look like stripes. */
const EDGED = 16;

/** Colours of the style sheet, by variable name without dashes. */
export type Palette = Readonly<Record<string, string>>;

export interface Picture {
  boxes: readonly Box[];
  /** The name of a node's colour in the palette. */
  colour: (node: number) => string;
  /** The strength of a node's colour, from 0 to 1; 1 by default. */
  strength?: ((node: number) => number) | undefined;
  /** Nodes that are hatched, so that they differ by more than colour. */
  hatched?: ((node: number) => boolean) | undefined;
  label: (box: Box) => string;
  /** Whether a row is of what is around the focused box. */
  isAround: (row: number) => boolean;
  /** Nodes that match the search; null without a search. */
  found: ReadonlySet<Box> | null;
  chosen: Box | null;
  hovered: Box | null;
}

/** What is drawn on. */
export interface Sheet {
  ctx: CanvasRenderingContext2D;
  palette: Palette;
  width: number;
  height: number;
}

export interface ScrolledSheet extends Sheet {
  /** The vertical scroll position, in pixels. */
  top: number;
}

export function paint(sheet: ScrolledSheet, picture: Picture): void {
  const { ctx, palette, width, height, top } = sheet;
  ctx.clearRect(0, 0, width, height);
  ctx.font = `12px ${palette["font"] ?? "sans-serif"}`;
  ctx.textBaseline = "middle";
  for (const box of picture.boxes) {
    const y = box.row * ROW - top;
    if (y > height || y + ROW < 0) continue;
    fill(sheet, picture, box, y);
  }
  const { chosen, hovered } = picture;
  if (hovered !== null && hovered.joined === 1) frame(sheet, hovered, hovered.row * ROW - top, false);
  if (chosen !== null) frame(sheet, chosen, chosen.row * ROW - top, true);
}

function fill(sheet: Sheet, picture: Picture, box: Box, y: number): void {
  const { ctx, palette } = sheet;
  // A pixel of the ground between boxes keeps them apart; the narrowest have none to give.
  const wide = box.width > 3 ? box.width - 1 : Math.max(box.width, 0.7);
  const colour = palette[box.joined > 1 ? "other" : picture.colour(box.node)] ?? "gray";
  const hit = picture.found?.has(box) === true;
  const dim = (picture.found !== null && !hit) || picture.isAround(box.row);
  ctx.fillStyle = colour;
  ctx.globalAlpha = box.joined > 1 ? 0.25 : dim ? 0.14 : opacity(picture, box.node);
  ctx.fillRect(box.left, y, wide, ROW - 1);
  ctx.globalAlpha = 1;
  if (box.joined === 1 && picture.hatched?.(box.node)) hatch(ctx, box.left, y, wide);
  if (hit) {
    ctx.fillStyle = palette["accent"] ?? "blue";
    ctx.fillRect(box.left, y + ROW - 4, wide, 3);
  } else if (box.joined === 1 && box.width > EDGED) {
    ctx.globalAlpha = dim ? 0.4 : 1;
    ctx.fillRect(box.left, y, 2, ROW - 1);
    ctx.globalAlpha = 1;
  }
  if (box.joined === 1 && box.width >= LEAST_TEXT) write(sheet, picture, box, y, dim && !hit);
}

/** Opacity of the strongest colour; text stays readable on it. */
const FAINTEST = 0.1;
export const STRONGEST = 0.62;
const EVEN = 0.34;

function opacity(picture: Picture, node: number): number {
  if (picture.strength === undefined) return EVEN;
  return FAINTEST + (STRONGEST - FAINTEST) * Math.min(picture.strength(node), 1);
}

const HATCH = 7;

/** Hatches a box in its colour. */
function hatch(ctx: CanvasRenderingContext2D, left: number, y: number, wide: number): void {
  const high = ROW - 1;
  ctx.save();
  ctx.beginPath();
  ctx.rect(left, y, wide, high);
  ctx.clip();
  ctx.strokeStyle = ctx.fillStyle;
  ctx.globalAlpha = 0.45;
  ctx.lineWidth = 1.5;
  ctx.beginPath();
  const last = Math.min(left + wide, ctx.canvas.width);
  // from a multiple, so that the lines of one box go on in the next
  for (let x = Math.floor((Math.max(left, 0) - high) / HATCH) * HATCH; x < last; x += HATCH) {
    ctx.moveTo(x, y + high);
    ctx.lineTo(x + high, y);
  }
  ctx.stroke();
  ctx.restore();
}

function write(sheet: Sheet, picture: Picture, box: Box, y: number, dim: boolean): void {
  const { ctx, palette, width } = sheet;
  const left = Math.max(box.left, 0) + PAD + 2;
  const room = Math.min(box.left + box.width, width) - left - PAD;
  const text = fitted(ctx, picture.label(box), room);
  if (text === "") return;
  ctx.fillStyle = palette[dim ? "muted" : "text"] ?? "black";
  ctx.fillText(text, left, y + ROW / 2 - 0.5);
}

function frame(sheet: Sheet, box: Box, y: number, chosen: boolean): void {
  const { ctx, palette } = sheet;
  ctx.strokeStyle = palette[chosen ? "focus" : "text"] ?? "black";
  ctx.lineWidth = chosen ? 2 : 1;
  const inset = chosen ? 1 : 0.5;
  ctx.strokeRect(
    box.left + inset,
    y + inset,
    Math.max(box.width - 1 - 2 * inset, 1),
    ROW - 1 - 2 * inset,
  );
}

const widths = new Map<string, number>();

/** The text cut to the width with an ellipsis; empty if no letter fits. */
function fitted(ctx: CanvasRenderingContext2D, text: string, room: number): string {
  // No name is wider than so many letters on any screen; longer ones need no measuring.
  const short = text.length > 400 ? text.slice(0, 400) : text;
  const width = measured(ctx, short);
  if (width <= room) return short;
  // Letters differ in width: a guess from their mean, then one fewer until it fits.
  let letters = Math.floor((short.length * (room - 9)) / width);
  while (letters > 1 && measured(ctx, `${short.slice(0, letters)}…`) > room) letters -= 1;
  return letters < 2 ? "" : `${short.slice(0, letters)}…`;
}

function measured(ctx: CanvasRenderingContext2D, text: string): number {
  const known = widths.get(text);
  if (known !== undefined) return known;
  if (widths.size > 20_000) widths.clear();
  const { width } = ctx.measureText(text);
  widths.set(text, width);
  return width;
}
