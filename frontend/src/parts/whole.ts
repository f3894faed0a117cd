// A whole table of a view, for panels that draw a picture of it: asked for page by page.

import type { Cell, Data, Options, Page, Query, Values } from "../api.ts";

export interface Whole {
  options: Record<string, Cell>;
  columns: Readonly<Record<string, readonly Cell[]>>;
  /** Rows that are here, and those that there are. */
  rows: number;
  total: number;
  totals: Record<string, number | null>;
  lacks: string[];
}

const PAGE = 10_000;
/** No picture shows more, and no browser should be asked to hold more. */
export const MOST = 100_000;

export async function whole(
  data: Data,
  trace: string,
  view: string,
  options: Options = {},
  query: Query = {},
  most: number = MOST,
): Promise<Whole> {
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
export function wholeOf(page: Page): Whole {
  return joined([page]);
}

function joined(pages: readonly Page[]): Whole {
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
export function numbers(table: Whole, name: string): number[] {
  return (table.columns[name] ?? []).map((cell) => (typeof cell === "number" ? cell : 0));
}

/** A column of texts; what is unknown is empty. */
export function texts(table: Whole, name: string): string[] {
  return (table.columns[name] ?? []).map((cell) => (cell === null ? "" : String(cell)));
}

export function cell(table: Whole, name: string, row: number): Cell {
  return table.columns[name]?.[row] ?? null;
}

export function number(table: Whole, name: string, row: number): number | null {
  const found = cell(table, name, row);
  return typeof found === "number" ? found : null;
}

export function textAt(table: Whole, name: string, row: number): string | null {
  const found = cell(table, name, row);
  return found === null ? null : String(found);
}
