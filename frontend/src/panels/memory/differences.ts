// Two tables of the view `memory_peak` held against each other, group by group (pure).

import type { FullTable } from "../../parts/data/full-table.ts";
import { number } from "../../parts/data/full-table.ts";
import { bytesText } from "../../units.ts";
import { groupWord } from "./freed.ts";

export interface Difference {
  /** A table and a row of it that names the group. */
  table: FullTable;
  row: number;
  before: number;
  after: number;
  change: number;
}

/** Every group of either table, the largest change first. */
export function differencesOf(before: FullTable, after: FullTable): Difference[] {
  const groups = new Map<string, Difference>();
  const add = (table: FullTable, side: "before" | "after") => {
    for (let row = 0; row < table.rows; row++) {
      const word = groupWord(table, row);
      const group = groups.get(word) ?? { table, row, before: 0, after: 0, change: 0 };
      group[side] += number(table, "bytes", row) ?? 0;
      group.change = group.after - group.before;
      groups.set(word, group);
    }
  };
  add(after, "after");
  add(before, "before");
  return [...groups.values()].sort((a, b) => Math.abs(b.change) - Math.abs(a.change));
}

/** What memory is compared with: the trace's peak or an instant of it, or those of another trace. */
export type Versus = { kind: "peak" } | { kind: "instant"; time: number } | { kind: "trace"; id: string; time: number | null };

export function versusOf(word: string | undefined): Versus | null {
  if (word === undefined) return null;
  if (word === "peak") return { kind: "peak" };
  const other = /^trace:(.+?)(?:@(\d+))?$/.exec(word);
  if (other?.[1] !== undefined) return { kind: "trace", id: other[1], time: other[2] === undefined ? null : Number(other[2]) };
  const time = Number(word);
  return word !== "" && Number.isFinite(time) ? { kind: "instant", time } : null;
}

/** The trace to ask for what is compared with, and the options of its views of an instant. */
export function sideOf(versus: Versus, own: string): { trace: string; options: Record<string, number> } {
  const time = versus.kind === "peak" ? null : versus.time;
  return { trace: versus.kind === "trace" ? versus.id : own, options: time === null ? {} : { at: Math.round(time) } };
}

/** The word for an instant of another trace. */
export function wordOfInstant(trace: string, time: number): string {
  return `trace:${trace}@${Math.max(Math.round(time), 0)}`;
}

export function signedBytes(bytes: number): string {
  return bytes > 0 ? `+${bytesText(bytes)}` : bytesText(bytes);
}
