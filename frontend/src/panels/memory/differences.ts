// Two tables of the view `memory_peak` held against each other, group by group (pure).

import type { FullTable } from "../../parts/data/full-table.ts";
import { number } from "../../parts/data/full-table.ts";
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

/** What memory is compared with: an instant of the trace, its peak, or the peak of another trace. */
export type Versus = { kind: "peak" } | { kind: "instant"; time: number } | { kind: "trace"; id: string };

export function versusOf(word: string | undefined): Versus | null {
  if (word === undefined) return null;
  if (word === "peak") return { kind: "peak" };
  if (word.startsWith("trace:")) return { kind: "trace", id: word.slice("trace:".length) };
  const time = Number(word);
  return word !== "" && Number.isFinite(time) ? { kind: "instant", time } : null;
}
