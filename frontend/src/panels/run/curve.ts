// The steps of a run over time, from the view `run_curve`, and where they are in the picture (pure).

import type { Span } from "../../draw/span.ts";
import type { FullTable } from "../../parts/data/full-table.ts";
import { cell, number, textAt } from "../../parts/data/full-table.ts";
import type { Place } from "./parts.ts";
import { placeAt } from "./parts.ts";

/** One step, or several that begin within one pixel. */
export interface Steps {
  start: number;
  kind: string;
  slow: boolean;
  recorded: boolean;
  count: number;
  shortest: number;
  median: number;
  longest: number;
  /** Of the longest: its number, its wait for data, its cause, its line, its start in the trace. */
  step: number;
  dataWait: number;
  cause: string | null;
  place: Place | null;
  traceStart: number | null;
}

export type ScaleKind = "logarithmic" | "linear";

export function stepsOf(table: FullTable): Steps[] {
  return Array.from({ length: table.rows }, (_, row) => {
    const of = (name: string) => number(table, name, row) ?? 0;
    return {
      start: of("start"),
      kind: textAt(table, "kind", row) ?? "",
      slow: cell(table, "slow", row) === true,
      recorded: cell(table, "recorded", row) === true,
      count: of("count"),
      shortest: of("shortest"),
      median: of("median"),
      longest: of("longest"),
      step: of("step"),
      dataWait: of("data_wait"),
      cause: textAt(table, "cause", row),
      place: placeAt(table, row),
      traceStart: number(table, "trace_start", row),
    };
  });
}

/** From the first step to the last one's end, with a little room. */
export function extent(steps: readonly Steps[]): Span {
  const from = steps.reduce((found, one) => Math.min(found, one.start), Infinity);
  const to = steps.reduce((found, one) => Math.max(found, one.start + one.longest), 0);
  if (!Number.isFinite(from)) return { from: 0, to: 1 };
  const room = Math.max(0.01 * (to - from), 1);
  return { from: Math.max(from - room, 0), to: to + room };
}

/** Colours of kinds, that with most time first; the same for all kinds beyond them. */
const COLOURS = ["kernel", "runtime", "collective", "copy", "python"] as const;
export const OTHER_KINDS = "other";

/** The variable of style.css for each of the kinds, which are given in order of their time. */
export function coloursOf(kinds: readonly string[]): ReadonlyMap<string, string> {
  return new Map(kinds.map((kind, at) => [kind, COLOURS[at] ?? OTHER_KINDS]));
}

/** The room around the picture, in pixels. */
export const ROOM = { left: 62, right: 10, top: 10, bottom: 22 } as const;

export interface Scale {
  x: (time: number) => number;
  y: (duration: number) => number;
  time: (x: number) => number;
  /** The durations that are marked on the axis. */
  marks: number[];
}

export function scaleOf(
  steps: readonly Steps[], span: Span, kind: ScaleKind, width: number, height: number,
): Scale {
  const wide = Math.max(width - ROOM.left - ROOM.right, 1);
  const high = Math.max(height - ROOM.top - ROOM.bottom, 1);
  const perNs = wide / Math.max(span.to - span.from, 1);
  const share = kind === "logarithmic" ? logarithmic(steps) : linear(steps);
  return {
    x: (time) => ROOM.left + (time - span.from) * perNs,
    y: (duration) => ROOM.top + high * (1 - share.of(duration)),
    time: (x) => span.from + Math.min(Math.max(x - ROOM.left, 0), wide) / perNs,
    marks: share.marks(Math.max(Math.floor(high / 40), 2)),
  };
}

interface Axis {
  /** The place of a duration on the axis, from 0 to 1. */
  of: (duration: number) => number;
  marks: (most: number) => number[];
}

function linear(steps: readonly Steps[]): Axis {
  const most = 1.06 * steps.reduce((found, one) => Math.max(found, one.longest), 1_000);
  return {
    of: (duration) => duration / most,
    marks: (count) => {
      const least = most / count;
      const power = 10 ** Math.floor(Math.log10(least));
      const step = [1, 2, 5, 10].map((times) => times * power).find((one) => one >= least) ?? least;
      return Array.from({ length: Math.floor(most / step) + 1 }, (_, at) => at * step);
    },
  };
}

function logarithmic(steps: readonly Steps[]): Axis {
  const low = Math.max(steps.reduce((found, one) => Math.min(found, one.shortest), Infinity), 1_000);
  const high = Math.max(steps.reduce((found, one) => Math.max(found, one.longest), 0), low);
  const isEmpty = !Number.isFinite(low);
  const from = Math.log10(isEmpty ? 1e6 : low / 1.5);
  const to = Math.log10(isEmpty ? 1e9 : high * 1.5);
  return {
    of: (duration) => (Math.log10(Math.max(duration, 1)) - from) / (to - from),
    marks: (count) => roundDurations(10 ** from, 10 ** to, count),
  };
}

/** Round durations between two, on a logarithmic axis: of finer ones only if they are few. */
export function roundDurations(low: number, high: number, most: number): number[] {
  const powers = Array.from({ length: 14 }, (_, power) => 10 ** power);
  for (const times of [[1, 2, 5], [1, 3], [1]]) {
    const marks = powers.flatMap((power) => times.map((one) => one * power)).filter((one) => one >= low && one <= high);
    if (marks.length <= most) return marks;
  }
  const decades = powers.filter((power) => power >= low && power <= high);
  const every = Math.ceil(decades.length / most);
  return decades.filter((_, at) => at % every === 0);
}

/** How far from a mark the pointer may be, in pixels. */
const REACH = 16;

/** The steps whose mark is nearest to a point of the picture; null if none is near. */
export function stepsAt(steps: readonly Steps[], scale: Scale, x: number, y: number): number | null {
  let [best, least] = [null as number | null, REACH ** 2];
  steps.forEach((one, at) => {
    const [left, right] = [scale.x(one.start), one.count === 1 ? scale.x(one.start + one.longest) : scale.x(one.start)];
    const across = x < left ? left - x : Math.max(0, x - right);
    const [top, bottom] = [scale.y(one.longest), scale.y(one.shortest)];
    const along = y < top ? top - y : Math.max(0, y - bottom);
    // What is above the steps belongs to the column that is pointed at: across counts for more.
    const distance = across ** 2 + (along / 4) ** 2;
    if (distance < least) [best, least] = [at, distance];
  });
  return best;
}
