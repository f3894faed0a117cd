// Names and times of steps, from the view `steps`.

import { plain } from "../text/plain.ts";
import { STEP_PARTS } from "./stepparts.ts";
import { number, textAt } from "../data/full-table.ts";
import type { FullTable } from "../data/full-table.ts";

/** The columns of the view `steps` that the picture needs. */
export const STEP_COLUMNS: readonly string[] = [
  "step", "counted", "time", "host_time", "device_time", "lag", "start", "source", "note",
  ...STEP_PARTS.map((part) => part.column),
];

/** The time span of a step on host and device; null if unknown. */
export function stepSpan(steps: FullTable, row: number): { from: string; to: string } | null {
  const start = number(steps, "start", row);
  const host = number(steps, "host_time", row);
  if (start === null || host === null) return null;
  const lag = Math.max(0, number(steps, "lag", row) ?? 0);
  return { from: String(start), to: String(start + host + lag) };
}

/** Steps that do not count for medians, with the reason. */
export function uncountedSteps(steps: FullTable): { row: number; step: string; note: string }[] {
  const counted = steps.columns["counted"] ?? [];
  return [...counted.keys()]
    .filter((row) => counted[row] !== true)
    .map((row) => ({ row, step: stepName(steps, row), note: plain(textAt(steps, "note", row) ?? "") }));
}

export function stepName(steps: FullTable, row: number): string {
  return textAt(steps, "source", row) === "window" ? "recording" : String(number(steps, "step", row) ?? row);
}

/** A time on an axis: in the unit of the largest, without needless digits. */
export function roundTime(time: number, most: number): string {
  const [size, unit] = most >= 1e9 ? [1e9, "s"] : most >= 1e6 ? [1e6, "ms"] : [1e3, "us"];
  return `${Number((time / size).toPrecision(3))} ${unit}`;
}
