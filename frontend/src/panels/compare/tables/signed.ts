// Texts of differences with signs (pure).

import type { Unit } from "../../../data/api.ts";
import { shareText, text } from "../../../units.ts";

/** A difference with its sign. */
export function signed(value: number, unit: Unit = "ns"): string {
  if (value === 0) return text(0, unit);
  return `${value > 0 ? "+" : "−"}${text(Math.abs(value), unit)}`;
}

/** From this ratio on, a change is written as how many times it is what was before. */
const MIN_CHANGE_IN_TIMES = 10;

/** A difference relative to what was before, with its sign; a dash where nothing was. */
export function signedShare(change: number | null): string {
  if (change === null) return "-";
  if (change >= MIN_CHANGE_IN_TIMES) return `+${text(Math.round(change), "count")} times`;
  return change === 0 ? shareText(0) : `${change > 0 ? "+" : "−"}${shareText(Math.abs(change))}`;
}
