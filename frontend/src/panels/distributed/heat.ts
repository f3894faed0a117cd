// The heatmap of ranks and steps: its values and layout.

import { cell } from "../../parts/data/full-table.ts";
import type { FullTable } from "../../parts/data/full-table.ts";

export interface Heat {
  labels: string[];
  steps: number[];
  /** Values by rank, then by step; NaN if unknown. */
  values: Float64Array;
  /** The largest value, at least 0. */
  most: number;
}

/** Rows of the view `ranks` by step. */
export function heatOf(table: FullTable, column: string): Heat {
  const labels = new Map<string, number>();
  const numbers = new Set<number>();
  for (let row = 0; row < table.rows; row++) {
    const label = String(cell(table, "label", row) ?? "");
    if (!labels.has(label)) labels.set(label, labels.size);
    const step = cell(table, "step", row);
    if (typeof step === "number") numbers.add(step);
  }
  const steps = [...numbers].sort((one, other) => one - other);
  const place = new Map(steps.map((step, largestValueAt) => [step, largestValueAt]));
  const values = new Float64Array(labels.size * steps.length).fill(Number.NaN);
  let most = 0;
  for (let row = 0; row < table.rows; row++) {
    const value = cell(table, column, row);
    const [rank, step] = [labels.get(String(cell(table, "label", row) ?? "")), place.get(Number(cell(table, "step", row)))];
    if (rank === undefined || step === undefined || typeof value !== "number") continue;
    values[rank * steps.length + step] = value;
    most = Math.max(most, value);
  }
  return { labels: [...labels.keys()], steps, values, most };
}

export interface Sheet {
  /** Height of a row and width of a column, in CSS pixels. */
  row: number;
  column: number;
  /** Ranks per row, and steps per column. */
  ranks: number;
  steps: number;
  rows: number;
  columns: number;
}

const TALLEST = 22;
const WIDEST = 96;
/** Smallest cell that the pointer can hit, in pixels. */
const LEAST = 3;

/** The layout of the heatmap in a given width and maximum height. */
export function layoutHeat(heat: Heat, width: number, height: number): Sheet {
  const ranks = Math.max(1, Math.ceil((heat.labels.length * LEAST) / height));
  const steps = Math.max(1, Math.ceil((heat.steps.length * LEAST) / width));
  const rows = Math.ceil(heat.labels.length / ranks);
  const columns = Math.ceil(heat.steps.length / steps);
  const row = Math.min(TALLEST, Math.max(LEAST, Math.floor(height / Math.max(rows, 1))));
  const column = Math.min(WIDEST, width / Math.max(columns, 1));
  return { row, column, ranks, steps, rows, columns };
}

/** The largest value of a cell with its rank and step; null if unknown. */
export function largestValueAt(heat: Heat, sheet: Sheet, row: number, column: number): { rank: number; step: number; value: number } | null {
  let found: { rank: number; step: number; value: number } | null = null;
  const lastRank = Math.min((row + 1) * sheet.ranks, heat.labels.length);
  const lastStep = Math.min((column + 1) * sheet.steps, heat.steps.length);
  for (let rank = row * sheet.ranks; rank < lastRank; rank++) {
    for (let step = column * sheet.steps; step < lastStep; step++) {
      const value = heat.values[rank * heat.steps.length + step] ?? Number.NaN;
      if (!Number.isNaN(value) && (found === null || value > found.value)) found = { rank, step, value };
    }
  }
  return found;
}

/** The rows whose labels fit. */
export function labelledRows(size: number, room: number): number {
  const least = Math.max(1, Math.ceil(room / size));
  const [round = least] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024].filter((step) => step >= least);
  return round;
}
