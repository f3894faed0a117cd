// Maps a table row to the options of the view `occurrences` that list its slices.

import type { Cell, Options } from "../../../data/api.ts";

export type ValueOf = (column: string) => Cell;

/** Where a view names its slices elsewhere than in `name`. */
const NAMED: Readonly<Record<string, string>> = {
  launches: "call",
  syncs: "call",
  memory_events: "operator",
  memory_peak: "operator",
};
/** What slices of a view's names are, where the row does not say it. */
const KINDS: Readonly<Record<string, string>> = {
  kernels: "kernel",
  launches: "call",
  syncs: "call",
  copies: "copy",
  memory_events: "operator",
  memory_peak: "operator",
  memory_operators: "operator",
};
/** Views whose rows stand for no slices: measures, and instants. */
const WITHOUT: ReadonlySet<string> = new Set([
  "health", "overview", "memory_curve", "overlap", "timeline", "modules",
  "run", "run_summary", "run_kinds", "run_lines", "run_steps", "run_curve",
]);
const OF_ROWS: Readonly<Record<string, string>> = {
  operator: "operator",
  annotation: "annotation",
  frame: "frame",
  module: "frame",
  call: "call",
  kernel: "kernel",
  copy: "copy",
};

/** The options for a row; null if it has no slices. */
export function originOf(view: string, valueOf: ValueOf, asked: Options): Options | null {
  if (WITHOUT.has(view)) return null;
  const found = named(view, valueOf) ?? alike(view, valueOf) ?? within(valueOf) ?? onLine(valueOf);
  return found === null ? null : { ...found, ...(asked["counted"] === true ? { counted: true } : {}) };
}

function named(view: string, valueOf: ValueOf): Options | null {
  const name = valueOf(NAMED[view] ?? "name");
  if (typeof name !== "string" || name === "") return null;
  const kind = KINDS[view] ?? OF_ROWS[String(valueOf("kind"))];
  if (view === "operators" && kind === undefined) return null; // memory that no operator kept
  const [shape, stack] = [valueOf("input_shapes"), valueOf("stack")];
  return {
    name,
    ...(kind === undefined ? {} : { kind }),
    ...(view === "operators" && typeof shape === "string" && shape !== "[]" ? { shape } : {}),
    ...(view === "operators" && typeof stack === "string" ? { stack } : {}),
    ...onLine(valueOf),
  };
}

/** Slices named as the one that the row names as its longest. */
function alike(view: string, valueOf: ValueOf): Options | null {
  const longest = valueOf("longest");
  if (typeof longest !== "number" || view !== "copies") return null;
  return { like: longest, kind: "copy", ...onLine(valueOf) };
}

/** What was open while the row lasted: a gap, a step. */
function within(valueOf: ValueOf): Options | null {
  const start = valueOf("start");
  const lasting = ["longest", "time", "duration"].map(valueOf).find((value) => typeof value === "number");
  if (typeof start !== "number" || typeof lasting !== "number" || lasting <= 0) return null;
  return { start: Math.max(start, 0), end: start + lasting };
}

function onLine(valueOf: ValueOf): Options | null {
  const [file, line] = [valueOf("file"), valueOf("line")];
  return typeof file === "string" && typeof line === "number" ? { file, line } : null;
}

/** The slices in words. */
export function originWords(origin: Options): string {
  if (origin["start"] !== undefined) return "What was open at that time";
  if (origin["name"] !== undefined || origin["like"] !== undefined) return "Its slices";
  return "What ran on the line, or was launched there";
}
