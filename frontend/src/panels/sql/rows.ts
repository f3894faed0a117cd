// The rows of a result, which are all here: search, filters and order as in every table.

import { useMemo, useReducer } from "preact/hooks";
import type { Cell, Page, Query, Values } from "../../data/api.ts";
import type { SqlResult } from "../../data/sql.ts";
import { gatherColumn, runQuery } from "../../data/table.ts";
import type { RowsQuery } from "../grid/query/asking.ts";
import { columnSource } from "../grid/drawer/column-values.ts";
import { Rows } from "../grid/query/rows.ts";

/** Significant digits that are shown of a number without a unit. */
const DIGITS = 6;

/** The result's page, with numbers as people read them; the CSV has all digits. */
export function readable(result: SqlResult): SqlResult {
  const columns = result.columns.map(({ name, type, unit }) => {
    const values = result.page.columns[name];
    const isLong = type === "number" && unit === "id" && values !== undefined && "values" in values;
    return [name, isLong ? { values: values.values.map(rounded) } : values] as const;
  });
  const shown = columns.filter((entry): entry is [string, Values] => entry[1] !== undefined);
  return { ...result, page: { ...result.page, columns: Object.fromEntries(shown) } };
}

function rounded(value: Cell): Cell {
  if (typeof value !== "number" || Number.isInteger(value)) return value;
  return Math.abs(value) >= 10 ** DIGITS ? Math.round(value) : Number(value.toPrecision(DIGITS));
}

const CHARACTER = 7.6;
const PADDING = 24;

/** The widths of columns of numbers without a unit, which may have any number of digits. */
export function numberWidths({ columns, page }: SqlResult): Record<string, number> {
  const numbers = columns.filter((column) => column.unit === "id");
  const widths = numbers.map(({ name }) => {
    const values = page.columns[name];
    const cells = values !== undefined && "values" in values ? values.values : [];
    const longest = cells.reduce<number>((most, cell) => Math.max(most, String(cell ?? "").length), name.length + 1);
    return [name, Math.round(PADDING + CHARACTER * longest)] as const;
  });
  return Object.fromEntries(widths);
}

/** Some rows of a result that match a question. */
export function pageOf(result: SqlResult, query: Query): Page {
  const { columns, page } = result;
  const { rows, window } = runQuery({ columns, values: page.columns, rows: page.rows }, query);
  const shown = Object.entries(page.columns).map(([name, values]) => [name, gatherColumn(values, window)] as const);
  return {
    ...page,
    all: page.rows,
    total: rows.length,
    from: Math.min(query.from ?? 0, rows.length),
    rows: window.length,
    columns: Object.fromEntries(shown),
  };
}

export function useResultRows(result: SqlResult, query: Query): RowsQuery {
  const [version, changed] = useReducer((count: number) => count + 1, 0);
  const key = JSON.stringify(query);
  const rows = useMemo(() => {
    const made = new Rows(async (from, count) => pageOf(result, { ...query, from, rows: count }), () => changed(undefined));
    made.want(0, 1);
    return made;
  }, [result, key]);
  const column = (name: string) => columnSource([result.columns, result.page.rows], async (asked) => pageOf(result, asked), query, name);
  return { rows, version, isStale: false, again: () => undefined, column };
}

