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

const ADDRESS = /\b0x[0-9a-f]+/gi;

/**
 * The rows of all pages: first that of all slices, then those that differ most; of more than two traces
 * those of which there is most. Rows of the same name and category are one row, where each trace has one
 * of them at most; addresses in names differ from run to run and do not count.
 */
export function comparedRows(pages: readonly Page[], measure: Measure): ComparedRow[] {
  const found = new Map<string, ComparedRow & { amounts: (Amounts | null)[] }>();
  const names = pages.map(namesOf);
  const repeated = new Set(names.flatMap((known) => known.filter(isAgain())));
  for (const [at, page] of pages.entries()) {
    const read = cellReader(page);
    for (const [row, name] of (names[at] ?? []).entries()) {
      const key = repeated.has(name) ? `${at} ${row}` : name;
      const known = found.get(key) ?? { what: read.text("what", row), category: read.text("category", row), amounts: pages.map(() => null) };
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

const ALL = "";

/** Tells of each name whether it was there before. */
function isAgain(): (name: string) => boolean {
  const seen = new Set<string>();
  return (name) => seen.size === seen.add(name).size;
}

/** What the rows are known by in all traces; the first is that of all slices. */
function namesOf(page: Page): string[] {
  const read = cellReader(page);
  const name = (row: number) => `${read.text("category", row)}\0${read.text("what", row).replaceAll(ADDRESS, "0x")}`;
  return Array.from({ length: page.rows }, (_, row) => (row === 0 ? ALL : name(row)));
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
