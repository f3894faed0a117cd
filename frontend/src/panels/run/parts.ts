// The parts of a run, from the view `run` (pure).

import { labelOfValue } from "../../parts/data/labels.ts";
import type { Labels } from "../../parts/data/labels.ts";
import type { FullTable } from "../../parts/data/full-table.ts";
import { number, textAt } from "../../parts/data/full-table.ts";

export interface Place {
  file: string;
  line: number;
  function: string | null;
}

export interface Share {
  /** The package, or the kind of step; null if the part has none. */
  what: string | null;
  time: number;
  place: Place | null;
}

export interface Part {
  part: string;
  label: string;
  /** The variable of style.css. */
  colour: string;
  time: number;
  /** Of the wall time; null if that is 0. */
  share: number | null;
  count: number;
  /** What it is made of, the costliest first. */
  shares: Share[];
}

/** The variable of style.css for each part. */
const COLOURS: Readonly<Record<string, string>> = {
  start: "idle", imports: "python", data: "memory", first_batch: "warn", compile: "collective",
  steps: "kernel", data_wait: "loading", evaluation: "operator", checkpoint: "runtime",
  epoch_boundary: "copy", garbage_collection: "mark", logging: "faster", processes: "warn", recording: "other",
  end: "line-strong", other: "muted",
};

/** The parts, the longest first; rows of one part are put together. Steps have the line of their loop. */
export function partsOf(table: FullTable, labels: Labels, loops: ReadonlyMap<string, Place> = new Map()): Part[] {
  const found = new Map<string, Part>();
  for (let row = 0; row < table.rows; row++) {
    const name = textAt(table, "part", row) ?? "other";
    const part = found.get(name) ?? {
      part: name, label: labelOfValue(labels, name).text, colour: COLOURS[name] ?? "muted", time: 0, share: null, count: 0, shares: [],
    };
    found.set(name, part);
    const time = number(table, "time", row) ?? 0;
    part.time += time;
    part.count += number(table, "count", row) ?? 0;
    const share = number(table, "share", row);
    if (share !== null) part.share = (part.share ?? 0) + share;
    const what = textAt(table, "what", row);
    const loop = name === "steps" && what !== null ? loops.get(what) ?? null : null;
    part.shares.push({ what, time, place: placeAt(table, row) ?? loop });
  }
  const parts = [...found.values()].toSorted((one, other) => other.time - one.time);
  for (const part of parts) part.shares.sort((one, other) => other.time - one.time);
  return parts;
}

export function placeAt(table: FullTable, row: number): Place | null {
  const [file, line] = [textAt(table, "file", row), number(table, "line", row)];
  return file === null || line === null ? null : { file, line, function: textAt(table, "function", row) };
}

/** The line of the loop of each kind of steps, where it is known; from the view `run_kinds`. */
export function loopsOf(kinds: FullTable): ReadonlyMap<string, Place> {
  const found = new Map<string, Place>();
  for (let row = 0; row < kinds.rows; row++) {
    const [kind, place] = [textAt(kinds, "kind", row), placeAt(kinds, row)];
    if (kind !== null && place !== null) found.set(kind, place);
  }
  return found;
}

/** The share of the wall time below which a line of a part is not listed. */
const SMALL = 0.01;
const MOST_SHARES = 4;

/** What a part is made of that is worth a row: none where the part's own row says it all. */
export function namedShares(part: Part, wall: number): Share[] {
  if (onlyShare(part) !== null) return [];
  const named = part.shares.filter((share) => (share.what !== null || share.place !== null) && share.time >= SMALL * wall);
  return named.slice(0, MOST_SHARES);
}

/** What nearly all of a part is, if it has a name or a line; null if it is of several. */
export function onlyShare(part: Part): Share | null {
  const [first] = part.shares;
  if (first === undefined || (first.what === null && first.place === null)) return null;
  return first.time >= (1 - SMALL) * part.time ? first : null;
}

export interface Cause {
  cause: string;
  place: Place | null;
  count: number;
  excess: number;
}

/** Slow steps by cause and line, the costliest first. */
export function causesOf(slow: FullTable): Cause[] {
  const found = new Map<string, Cause>();
  for (let row = 0; row < slow.rows; row++) {
    const cause = textAt(slow, "cause", row) ?? "unknown";
    const place = placeAt(slow, row);
    const key = JSON.stringify([cause, place?.file, place?.line]);
    const one = found.get(key) ?? { cause, place, count: 0, excess: 0 };
    found.set(key, one);
    one.count += 1;
    one.excess += number(slow, "excess", row) ?? 0;
  }
  return [...found.values()].toSorted((one, other) => other.excess - one.excess);
}
