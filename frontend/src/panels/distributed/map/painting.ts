// Draws the map of ranks and steps: its cells, names and groups.

import { fitCanvas } from "../../../draw/canvas.ts";
import type { Palette } from "../../../draw/icicle.ts";
import { plain } from "../../../parts/text/plain.ts";
import { darkness, labelledRows } from "./heat.ts";
import type { Cells, Heat, Scale, Sheet } from "./heat.ts";

export const AXIS = 20;
/** Height that a name needs. */
const NAME = 14;
/** Width that a step's number needs. */
const NUMBER = 38;
/** Size of a cell in pixels from which there is room between cells. */
const SPACED = 8;

export interface Drawn {
  heat: Heat;
  sheet: Sheet;
  cells: Cells;
  scale: Scale;
  palette: Palette;
  hue: string;
  width: number;
  gutter: Gutter;
}

/** The room on the left: for names of groups, then for those of ranks, in CSS pixels. */
export interface Gutter {
  groups: number;
  ranks: number;
}

export function paint(canvas: HTMLCanvasElement, drawn: Drawn): void {
  const { sheet, palette, width } = drawn;
  const context = canvas.getContext("2d", { alpha: false });
  if (context === null) return;
  fitCanvas(canvas, width, sheet.height + AXIS);
  context.fillStyle = palette["bg"] ?? "";
  context.fillRect(0, 0, width, sheet.height + AXIS);
  paintCells(context, drawn);
  context.font = `11px ${palette["font"] ?? "sans-serif"}`;
  context.textBaseline = "middle";
  writeRanks(context, drawn);
  writeSteps(context, drawn);
}

function paintCells(context: CanvasRenderingContext2D, drawn: Drawn): void {
  const { sheet, cells, scale, palette, hue, gutter } = drawn;
  const left = gutter.groups + gutter.ranks;
  const gap = sheet.row > SPACED && sheet.column > SPACED ? 1 : 0;
  for (const [row, { top }] of sheet.lines.entries()) {
    for (let column = 0; column < sheet.columns; column++) {
      const value = cells.values[row * sheet.columns + column] ?? Number.NaN;
      if (Number.isNaN(value)) continue;
      const [x, right] = [left + column * sheet.column, left + (column + 1) * sheet.column];
      context.globalAlpha = 1;
      context.fillStyle = palette["sunken"] ?? "";
      context.fillRect(x, top, right - x - gap, sheet.row - gap);
      context.globalAlpha = darkness(scale, value);
      context.fillStyle = palette[hue] ?? "";
      context.fillRect(x, top, right - x - gap, sheet.row - gap);
    }
  }
  context.globalAlpha = 1;
}

/** Names of ranks beside the cells, and of groups with a line along them. */
function writeRanks(context: CanvasRenderingContext2D, drawn: Drawn): void {
  const { heat, sheet, palette, gutter } = drawn;
  const every = labelledRows(sheet.row, NAME);
  context.fillStyle = palette["muted"] ?? "";
  context.textAlign = "right";
  let since = 0;
  for (const [row, { from, top, first }] of sheet.lines.entries()) {
    if (first) since = row;
    const next = sheet.lines.findIndex((line, at) => at > row && line.first);
    const left = (next < 0 ? sheet.height : sheet.lines[next]?.top ?? 0) - top;
    if ((row - since) % every !== 0 || (left < NAME && !first) || gutter.ranks === 0) continue;
    context.fillText(plain(heat.labels[from] ?? "").slice(0, 13), gutter.ranks + gutter.groups - 8, top + Math.max(sheet.row, 10) / 2);
  }
  context.textAlign = "left";
  let below = -NAME;
  for (const { title, from, to } of heat.bands) {
    const lines = sheet.lines.filter((line) => line.from >= from && line.to <= to);
    const [begin, end] = [lines[0]?.top, lines.at(-1)?.top];
    if (begin === undefined || end === undefined || gutter.groups === 0) continue;
    context.fillStyle = palette["line-strong"] ?? "";
    context.fillRect(0, begin, 2, end + sheet.row - begin);
    if (begin < below + NAME) continue;
    below = begin;
    context.fillStyle = palette["text"] ?? "";
    context.fillText(cut(context, plain(title), gutter.groups - 10), 7, begin + Math.max(sheet.row, 10) / 2);
  }
}

function writeSteps(context: CanvasRenderingContext2D, drawn: Drawn): void {
  const { heat, sheet, palette, gutter } = drawn;
  const [left, middle] = [gutter.groups + gutter.ranks, sheet.height + AXIS / 2 + 1];
  context.fillStyle = palette["muted"] ?? "";
  context.textAlign = "center";
  const every = labelledRows(sheet.column, NUMBER);
  for (let column = 0; column < sheet.columns; column += every) {
    context.fillText(String(heat.steps[column * sheet.steps] ?? ""), left + (column + 0.5) * sheet.column, middle);
  }
  context.textAlign = "right";
  context.fillText("step", left - 12, middle);
}

function cut(context: CanvasRenderingContext2D, words: string, room: number): string {
  let kept = words;
  while (kept.length > 1 && context.measureText(kept).width > room) kept = kept.slice(0, -1);
  return kept === words ? words : `${kept.slice(0, -1)}…`;
}
