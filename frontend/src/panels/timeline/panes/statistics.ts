// Statistics of a marked area in several traces, row beside row (pure).

import type { Page } from "../../../data/api.ts";
import { cellReader } from "../tiles/cell-reader.ts";

export const MEASURES = ["self", "busy", "total", "count", "longest"] as const;
export type Measure = (typeof MEASURES)[number];
export type Amounts = Readonly<Record<Measure, number>> & {
  /** The longest slice, as its trace numbers it. */
  id: number;
};

export interface ComparedRow {
  what: string;
  category: string;
  /** By trace; null where it has no such slice. */
  amounts: readonly (Amounts | null)[];
}

const ALL = "";

/**
 * The rows of all pages: first that of all slices, then those that differ most; of more than two traces
 * those of which there is most. Rows with the same name and category are one row.
 */
export function comparedRows(pages: readonly Page[], measure: Measure): ComparedRow[] {
  const found = new Map<string, ComparedRow & { amounts: (Amounts | null)[] }>();
  for (const [at, page] of pages.entries()) {
    const read = cellReader(page);
    const times = new Map<string, number>();
    for (let row = 0; row < page.rows; row++) {
      const [what, category] = [read.text("what", row), read.text("category", row)];
      const name = `${category}\0${what}`;
      const time = times.get(name) ?? 0; // tracks of two processes may have the same name
      if (row > 0) times.set(name, time + 1);
      const key = row === 0 ? ALL : `${time}\0${name}`;
      const known = found.get(key) ?? { what, category, amounts: pages.map(() => null) };
      known.amounts[at] = amountsOf(read, row);
      found.set(key, known);
    }
  }
  const all = found.get(ALL);
  found.delete(ALL);
  const size = (row: ComparedRow) => (pages.length === 2 ? Math.abs(difference(row, measure)) : sum(row, measure));
  const others = [...found.values()].sort((one, other) => size(other) - size(one) || sum(other, measure) - sum(one, measure));
  return all === undefined ? others : [all, ...others];
}

function amountsOf(read: ReturnType<typeof cellReader>, row: number): Amounts {
  const amounts = Object.fromEntries(MEASURES.map((name) => [name, read.number(name, row)])) as Record<Measure, number>;
  return { ...amounts, id: read.number("id", row) };
}

/** The second less the first; a trace without such slices has none of them. */
export function difference({ amounts: [first, second] }: ComparedRow, measure: Measure): number {
  return (second?.[measure] ?? 0) - (first?.[measure] ?? 0);
}

function sum({ amounts }: ComparedRow, measure: Measure): number {
  return amounts.reduce((total, one) => total + (one?.[measure] ?? 0), 0);
}
