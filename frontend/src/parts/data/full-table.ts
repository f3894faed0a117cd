// Loads a complete table of a view, page by page.

import type { Cell, Data, Options, Page, Query, Values } from "../../data/api.ts";

export interface FullTable {
  options: Record<string, Cell>;
  columns: Readonly<Record<string, readonly Cell[]>>;
  /** The number of loaded rows, and of all rows. */
  rows: number;
  total: number;
  totals: Record<string, number | null>;
  lacks: string[];
}

const PAGE = 10_000;
/** The most rows to load. */
export const MOST = 100_000;

export async function loadTable(
  data: Data,
  trace: string,
  view: string,
  options: Options = {},
  query: Query = {},
  most: number = MOST,
): Promise<FullTable> {
  const pages: Page[] = [];
  for (let from = 0; from < most; ) {
    const rows = Math.min(PAGE, most - from);
    const page = await data.page(trace, view, options, { ...query, from, rows });
    pages.push(page);
    from += page.rows;
    if (page.rows === 0 || from >= page.total) break;
  }
  return joined(pages);
}

/** A table of which all rows came at once. */
export function fullTableOf(page: Page): FullTable {
  return joined([page]);
}

function joined(pages: readonly Page[]): FullTable {
  const [first] = pages;
  if (first === undefined) {
    return { options: {}, columns: {}, rows: 0, total: 0, totals: {}, lacks: [] };
  }
  const names = Object.keys(first.columns);
  const columns = Object.fromEntries(
    names.map((name) => [name, pages.flatMap((page) => cells(page.columns[name]))]),
  );
  const rows = pages.reduce((sum, page) => sum + page.rows, 0);
  const { options, total, totals, lacks } = first;
  return { options, columns, rows, total, totals, lacks };
}

export function cells(values: Values | undefined): Cell[] {
  if (values === undefined) return [];
  if ("values" in values) return values.values;
  return values.codes.map((code) => (code === null ? null : (values.texts[code] ?? null)));
}

/** A column of numbers; what is unknown counts as 0. */
export function numbers(table: FullTable, name: string): number[] {
  return (table.columns[name] ?? []).map((cell) => (typeof cell === "number" ? cell : 0));
}

/** A column of texts; what is unknown is empty. */
export function texts(table: FullTable, name: string): string[] {
  return (table.columns[name] ?? []).map((cell) => (cell === null ? "" : String(cell)));
}

export function cell(table: FullTable, name: string, row: number): Cell {
  return table.columns[name]?.[row] ?? null;
}

export function number(table: FullTable, name: string, row: number): number | null {
  const found = cell(table, name, row);
  return typeof found === "number" ? found : null;
}

export function textAt(table: FullTable, name: string, row: number): string | null {
  const found = cell(table, name, row);
  return found === null ? null : String(found);
}
