// A collective on all its ranks: when each came, and what it did before (pure).

import { number, textAt } from "../../../parts/data/full-table.ts";
import type { FullTable } from "../../../parts/data/full-table.ts";
import { labelOfValue } from "../../../parts/data/labels.ts";
import type { Labels } from "../../../parts/data/labels.ts";
import { plain } from "../../../parts/text/plain.ts";
import { countText, timeText } from "../../../units.ts";

export interface Arrival {
  row: number;
  label: string;
  /** How much later than the first rank it came, and how long it waited and took part, in ns. */
  after: number;
  wait: number | null;
  duration: number;
  last: boolean;
}

/** The arrivals in a collective, in the order in which the ranks came. */
export function arrivalsOf(table: FullTable): Arrival[] {
  const found = [...Array(table.rows).keys()].map((row) => ({
    row,
    label: textAt(table, "label", row) ?? "",
    after: number(table, "start", row) ?? 0,
    wait: number(table, "wait", row),
    duration: number(table, "duration", row) ?? 0,
    last: table.columns["last"]?.[row] === true,
  }));
  const first = Math.min(...found.map(({ after }) => after));
  return found
    .map((one) => ({ ...one, after: one.after - first }))
    .sort((one, other) => one.after - other.after || one.row - other.row);
}

/** From the first arrival to the last end, in ns. */
export function spanOf(arrivals: readonly Arrival[]): number {
  return Math.max(1, ...arrivals.map(({ after, duration }) => after + duration));
}

/** Who came last, how long the others waited, and on what it spent more than they. */
export function spreadText(table: FullTable, arrivals: readonly Arrival[], causes: Labels): string {
  const last = arrivals.filter((one) => one.last).at(-1);
  const waits = arrivals.flatMap(({ wait, last: isLast }) => (wait === null || isLast ? [] : [wait]));
  if (arrivals.length < 2) return "It is found on one rank only: who waited for whom is unknown.";
  if (last === undefined || waits.length === 0) return "The clocks of its ranks are not aligned: who waited for whom is unknown.";
  const mean = waits.reduce((sum, wait) => sum + wait, 0) / waits.length;
  const others = waits.length === 1 ? "the other waited" : `the ${countText(waits.length)} others waited`;
  const came = `${plain(last.label)} came last, ${timeText(last.after)} after the first; ${others} ${timeText(mean)}${waits.length === 1 ? "" : " on average"}.`;
  const more = moreText(table, last.row, last.after, causes);
  return more === null ? came : `${came} Before it ${plain(last.label)} had ${more} than the median of the others.`;
}

export interface Before {
  /** The time since the previous collective, and what most of it is; null if unknown. */
  time: string | null;
  kind: string | null;
  name: string | null;
  file: string | null;
  line: number | null;
  /** What it spent more time on than the others; null if unknown, or if that explains nothing. */
  more: string | null;
}

/** Excess of less than this share of the longest wait for a collective does not explain it. */
const EXPLAINS = 0.1;

/** What a rank had more of than the others before a collective in which the first waited so long; null if that explains nothing. */
export function moreText(table: FullTable, row: number, wait: number, causes: Labels): string | null {
  const [cause, excess] = [textAt(table, "cause", row), number(table, "excess", row)];
  if (cause === null || excess === null || excess < EXPLAINS * wait) return null;
  return `${timeText(excess)} more ${labelOfValue(causes, cause).text}`;
}

/** What a rank did before the collective, in which the first waited so long. */
export function beforeOf(table: FullTable, row: number, wait: number, kinds: Labels, causes: Labels): Before {
  const [work, kind] = [number(table, "work", row), textAt(table, "longest", row)];
  return {
    time: work === null ? null : timeText(work),
    kind: kind === null ? null : labelOfValue(kinds, kind).text,
    name: textAt(table, "name", row),
    file: textAt(table, "file", row),
    line: number(table, "line", row),
    more: moreText(table, row, wait, causes),
  };
}
