// Maps a table row to the options of the view `occurrences` that list its slices.

import type { Cell, Options } from "../../../data/api.ts";

export type ValueOf = (column: string) => Cell;

/** Where a view names its slices elsewhere than in `name`. */
const NAMED: Readonly<Record<string, string>> = {
  launches: "call",
  syncs: "call",
  memory_events: "operator",
  memory_peak: "operator",
  memory_holders: "operator",
  memory_lifetimes: "operator",
};
/** What slices of a view's names are, where the row does not say it. */
const KINDS: Readonly<Record<string, string>> = {
  kernels: "kernel",
  launches: "call",
  syncs: "call",
  copies: "copy",
  memory_events: "operator",
  memory_peak: "operator",
  memory_holders: "operator",
  memory_lifetimes: "operator",
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

/** The view's columns that have the device time of a row, where it may be none. */
const DEVICE_TIME = ["device_time_total", "total_device_time"];

/** The address of the callers and callees of a row: of its name, or of the function on its line; null without either. */
export function sandwichWords(view: string, valueOf: ValueOf, origin: Options | null): Record<string, string> | null {
  if (origin === null) return null;
  const { name, kind, file, line } = origin;
  const times = DEVICE_TIME.map(valueOf).filter((time) => time !== null);
  // calls have no device time there: what they launched is below the operators around them
  const isHost = kind === "call" || (times.length > 0 && times.every((time) => time === 0));
  const words = { tree: "sandwich", ...(isHost ? { metric: "host" } : {}) };
  // modules are frames of their own kind there
  if (name !== undefined) return { ...words, of: String(name), ...(kind === undefined || kind === "frame" ? {} : { kind: String(kind) }) };
  const inside = valueOf("function");
  if (view !== "lines" || file === undefined) return null;
  return { ...words, file: String(file), line: String(line), ...(typeof inside === "string" ? { function: inside } : {}) };
}

/** The slices in words. */
export function originWords(origin: Options): string {
  if (origin["start"] !== undefined) return "What was open at that time";
  if (origin["name"] !== undefined || origin["like"] !== undefined) return "Its slices";
  return "What ran on the line, or was launched there";
}
