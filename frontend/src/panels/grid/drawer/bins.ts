// A histogram of durations on a scale of logarithms.

import type { FullTable } from "../../../parts/data/full-table.ts";
import { number } from "../../../parts/data/full-table.ts";
import { timeText } from "../../../units.ts";

/** As the view `occurrences` has them: bins to a power of ten. */
const BINS = 20;

export interface Bin {
  from: number;
  count: number;
  time: number;
}

export interface Bins {
  bins: Bin[];
  /** Powers of ten at both ends, with room for a bin. */
  low: number;
  high: number;
  most: number;
}

export function binsOf(table: FullTable): Bins | null {
  const bins: Bin[] = [];
  for (let row = 0; row < table.rows; row += 1) {
    const from = number(table, "at_least", row);
    if (from === null) continue; // slices whose end is not known
    bins.push({ from, count: number(table, "count", row) ?? 0, time: number(table, "duration", row) ?? 0 });
  }
  if (bins.length === 0) return null;
  const first = logOf(bins[0]?.from ?? 1);
  const last = logOf(bins.at(-1)?.from ?? 1) + 1 / BINS;
  const room = Math.max(0, 1 - (last - first)) / 2; // less than a power of ten says little
  return { bins, low: first - room, high: last + room, most: Math.max(...bins.map((bin) => bin.count)) };
}

function logOf(nanoseconds: number): number {
  return Math.log10(Math.max(nanoseconds, 1));
}

/** Where a duration stands, from 0 to 1. */
export function placeOf({ low, high }: Bins, nanoseconds: number): number {
  return (logOf(nanoseconds) - low) / (high - low);
}

export function widthOf({ low, high }: Bins): number {
  return 1 / BINS / (high - low);
}

/** Round durations along the scale: powers of ten, and their halves or fifths where there is room. */
export function ticksOf({ low, high }: Bins): { at: number; text: string }[] {
  const steps = high - low < 1.3 ? [1, 2, 5] : high - low < 2.6 ? [1, 3] : [1];
  const found: { at: number; text: string }[] = [];
  for (let power = Math.floor(low); power <= high; power += 1) {
    for (const step of steps) {
      const value = step * 10 ** power;
      const at = (Math.log10(value) - low) / (high - low);
      if (at >= 0 && at <= 1 && value >= 1) found.push({ at, text: short(value) });
    }
  }
  return found;
}

/** A round duration without digits after the point. */
function short(nanoseconds: number): string {
  return timeText(nanoseconds).replace(/\.0+ /, " ");
}
