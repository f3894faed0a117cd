// The map of ranks and steps: its values in an order of ranks, and its layout (pure).

import { cell } from "../../../parts/data/full-table.ts";
import type { FullTable } from "../../../parts/data/full-table.ts";

/** Ranks that stand together, as a range of rows of the values. */
export interface Band {
  title: string;
  from: number;
  to: number;
}

export interface Heat {
  labels: string[];
  steps: number[];
  /** Values by rank, then by step; NaN if unknown. */
  values: Float64Array;
  /** Groups of ranks in order; empty if ranks are not grouped. */
  bands: Band[];
}

/** Groups of ranks by their labels, as an order has them. */
export type LabelGroups = readonly { title: string; labels: readonly string[] }[];

/** Rows of the view `ranks` by step, in the given groups or as they come. */
export function heatOf(table: FullTable, column: string, groups: LabelGroups = []): Heat {
  const numbers = new Set<number>();
  const known = new Set<string>();
  for (let row = 0; row < table.rows; row++) {
    known.add(String(cell(table, "label", row) ?? ""));
    const step = cell(table, "step", row);
    if (typeof step === "number") numbers.add(step);
  }
  const { labels, bands } = inGroups([...known], groups);
  const rows = new Map(labels.map((label, at) => [label, at]));
  const steps = [...numbers].sort((one, other) => one - other);
  const columns = new Map(steps.map((step, at) => [step, at]));
  const values = new Float64Array(labels.length * steps.length).fill(Number.NaN);
  for (let row = 0; row < table.rows; row++) {
    const value = cell(table, column, row);
    const [rank, step] = [rows.get(String(cell(table, "label", row) ?? "")), columns.get(Number(cell(table, "step", row)))];
    if (rank !== undefined && step !== undefined && typeof value === "number") values[rank * steps.length + step] = value;
  }
  return { labels, steps, values, bands };
}

/** The labels group by group; what is in no group comes last, without a title. */
function inGroups(known: readonly string[], groups: LabelGroups): { labels: string[]; bands: Band[] } {
  const here = new Set(known);
  const labels: string[] = [];
  const bands: Band[] = [];
  const grouped = new Set(groups.flatMap((group) => group.labels));
  const rest = known.filter((label) => !grouped.has(label));
  for (const { title, labels: own } of groups.length === 0 ? [] : [...groups, { title: "", labels: rest }]) {
    const from = labels.length;
    labels.push(...own.filter((label) => here.has(label)));
    if (labels.length > from) bands.push({ title, from, to: labels.length });
  }
  return groups.length === 0 ? { labels: [...known], bands: [] } : { labels, bands };
}

/** A row of the picture: ranks that share it, and where it stands, in CSS pixels. */
export interface Line {
  from: number;
  to: number;
  top: number;
  /** Whether it is the first of its group. */
  first: boolean;
}

export interface Sheet {
  lines: Line[];
  /** Height of a row and width of a column, in CSS pixels. */
  row: number;
  column: number;
  columns: number;
  /** Most ranks per row, and steps per column. */
  ranks: number;
  steps: number;
  height: number;
}

const TALLEST = 22;
const WIDEST = 96;
/** Smallest cell, in pixels: the keys reach each of them, and the pointer if it is held still. */
const LEAST_ROW = 2;
const LEAST_COLUMN = 3;
/** Room between groups of ranks. */
const BETWEEN = 4;

/** The layout of the map in a given width and maximum height; no row holds ranks of two groups. */
export function layoutHeat(heat: Heat, width: number, height: number): Sheet {
  const steps = Math.max(1, Math.ceil((heat.steps.length * LEAST_COLUMN) / Math.max(width, 1)));
  const columns = Math.ceil(heat.steps.length / steps);
  const column = Math.min(WIDEST, width / Math.max(columns, 1));
  const all: readonly Band[] = [{ title: "", from: 0, to: heat.labels.length }];
  const isRoom = heat.bands.length * (LEAST_ROW + BETWEEN) <= height;
  const bands = heat.bands.length > 0 && isRoom ? heat.bands : all;
  const room = height - (bands.length - 1) * BETWEEN;
  const count = (ranks: number) => bands.reduce((sum, { from, to }) => sum + Math.ceil((to - from) / ranks), 0);
  let ranks = 1;
  while (count(ranks) * LEAST_ROW > room && ranks < heat.labels.length) ranks += 1;
  const row = Math.min(TALLEST, Math.max(LEAST_ROW, Math.floor(room / Math.max(count(ranks), 1))));
  const lines: Line[] = [];
  let top = 0;
  for (const [at, { from, to }] of bands.entries()) {
    if (at > 0) top += BETWEEN;
    for (let rank = from; rank < to; rank += ranks) {
      lines.push({ from: rank, to: Math.min(rank + ranks, to), top, first: rank === from });
      top += row;
    }
  }
  return { lines, row, column, columns, ranks, steps, height: top };
}

/** What the cells of the picture show. */
export interface Cells {
  /** The largest value of each, by row, then by column; NaN if unknown. */
  values: Float64Array;
  /** Its index in the values of the map. */
  places: Int32Array;
}

/** The largest value of each cell: what is unusual among ranks that share a row stays visible. */
export function cellsOf(heat: Heat, sheet: Sheet): Cells {
  const size = sheet.lines.length * sheet.columns;
  const found: Cells = { values: new Float64Array(size).fill(Number.NaN), places: new Int32Array(size).fill(-1) };
  for (const [row, { from, to }] of sheet.lines.entries()) {
    for (let rank = from; rank < to; rank++) {
      for (let step = 0; step < heat.steps.length; step++) {
        const place = rank * heat.steps.length + step;
        const at = row * sheet.columns + Math.floor(step / sheet.steps);
        const value = heat.values[place] ?? Number.NaN;
        if (Number.isNaN(value) || value <= (found.values[at] ?? Number.NaN)) continue;
        found.values[at] = value;
        found.places[at] = place;
      }
    }
  }
  return found;
}

/** A cell of the picture. */
export interface Pointed {
  row: number;
  column: number;
}

/** The rank and step that a cell shows; null if nothing of it is known. */
export function shownAt(heat: Heat, sheet: Sheet, cells: Cells, { row, column }: Pointed): { rank: number; step: number; value: number } | null {
  const at = row * sheet.columns + column;
  const place = cells.places[at] ?? -1;
  if (place < 0) return null;
  const rank = Math.floor(place / heat.steps.length);
  return { rank, step: place - rank * heat.steps.length, value: cells.values[at] ?? Number.NaN };
}

/** The cell that a rank's step is part of; null if the map has no such rank or step. */
export function placeOf(heat: Heat, sheet: Sheet, label: string, step: number): Pointed | null {
  const [rank, at] = [heat.labels.indexOf(label), heat.steps.indexOf(step)];
  const row = sheet.lines.findIndex(({ from, to }) => from <= rank && rank < to);
  return row < 0 || at < 0 ? null : { row, column: Math.floor(at / sheet.steps) };
}

/** The cell at a position in CSS pixels, counted from the first cell. */
export function under(sheet: Sheet, x: number, y: number): Pointed | null {
  const column = Math.floor(x / sheet.column);
  const row = sheet.lines.findIndex(({ top }) => top <= y && y < top + sheet.row);
  return row >= 0 && x >= 0 && column < sheet.columns ? { row, column } : null;
}

/** The cell that an arrow key leads to; null for any other key. */
export function moved(sheet: Sheet, from: Pointed | null, key: string): Pointed | null {
  const by = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] }[key];
  if (by === undefined) return null;
  if (from === null) return { row: 0, column: 0 };
  const kept = (value: number, count: number) => Math.min(Math.max(value, 0), count - 1);
  return { row: kept(from.row + (by[0] ?? 0), sheet.lines.length), column: kept(from.column + (by[1] ?? 0), sheet.columns) };
}

/** The median of a step over the ranks of a group, or over all; null if no value is known. */
export function medianOfStep(heat: Heat, step: number, band: Band | null): number | null {
  const values: number[] = [];
  for (let rank = band?.from ?? 0; rank < (band?.to ?? heat.labels.length); rank++) {
    const value = heat.values[rank * heat.steps.length + step] ?? Number.NaN;
    if (!Number.isNaN(value)) values.push(value);
  }
  return median(values);
}

export function median(values: readonly number[]): number | null {
  const sorted = [...values].sort((one, other) => one - other);
  const middle = sorted.length / 2;
  if (sorted.length === 0) return null;
  const [low, high] = [sorted[Math.ceil(middle) - 1] ?? 0, sorted[Math.floor(middle)] ?? 0];
  return (low + high) / 2;
}

/** The values that the lightest and the darkest colour stand for, and the largest that there is. */
export interface Scale {
  low: number;
  high: number;
  most: number;
}

/** Share of the values that are darker than the scale: a few slow steps would hide all others. */
const BEYOND = 0.01;

/** The scale of the values: from 0, or from the least one where all are far from 0. */
export function scaleOf(values: Float64Array, fromZero: boolean): Scale {
  const sorted = values.filter((value) => !Number.isNaN(value)).sort();
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0;
  const most = Math.max(at(1), 0);
  const high = Math.max(at(1 - BEYOND), 0);
  return { low: fromZero ? 0 : Math.max(0, Math.min(at(0), high)), high: high > 0 ? high : most, most };
}

/** How dark a value is, from 0 to 1. */
export function darkness(scale: Scale, value: number): number {
  if (scale.high <= scale.low) return value > scale.low ? 1 : 0;
  return Math.min(1, Math.max(0, (value - scale.low) / (scale.high - scale.low)));
}

/** Every how many rows a label fits. */
export function labelledRows(size: number, room: number): number {
  const least = Math.max(1, Math.ceil(room / size));
  const [round = least] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024].filter((step) => step >= least);
  return round;
}
