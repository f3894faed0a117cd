// All values of one column under the table's search and filters, but those on the column itself.

import type { Cell, Page, Query } from "../../../data/api.ts";
import { cells } from "../../../parts/data/full-table.ts";
import { grouped } from "../../../units.ts";

/** The most values that are loaded. */
export const MOST_VALUES = 2_000_000;

export interface ColumnValues {
  values: readonly Cell[];
  /** Of which rows they are, where not of all that match; else null. */
  part: string | null;
  /** Whether a sum over rows means something. */
  isSummed: boolean;
}

/** Where the values of a column come from. */
export interface ColumnSource {
  /** Which rows they are of: other rows have another text. */
  of: string;
  load: () => Promise<ColumnValues>;
}

/** The source of a column of the rows that match a query of some table. */
export function columnSource(table: unknown, ask: (query: Query) => Promise<Page>, query: Query, name: string): ColumnSource {
  const where = (query.where ?? []).filter((filter) => filter.column !== name);
  return { of: JSON.stringify([table, name, query.find ?? "", where]), load: () => loadColumn(ask, query, name) };
}

/** Loads the column page by page; `ask` answers a query of the table. */
export async function loadColumn(ask: (query: Query) => Promise<Page>, query: Query, name: string): Promise<ColumnValues> {
  const where = (query.where ?? []).filter((filter) => filter.column !== name);
  const values: Cell[] = [];
  for (;;) {
    const page = await ask({ ...query, where, columns: [name], from: values.length, rows: MOST_VALUES - values.length });
    for (const value of cells(page.columns[name])) values.push(value);
    if (page.rows === 0 || values.length >= page.total || values.length >= MOST_VALUES) {
      return { values, part: partWords(page, values.length), isSummed: name in page.totals };
    }
  }
}

function partWords({ held, all, total }: Page, loaded: number): string | null {
  const [few, many] = held === undefined ? [loaded, total] : [held, all];
  return few >= many ? null : `Of the first ${grouped(String(few))} of ${grouped(String(many))} rows, in the order of the table.`;
}
