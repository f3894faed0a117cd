// Loads the rows for the query in the URL; shows the previous rows meanwhile.

import { useEffect, useMemo, useReducer, useRef } from "preact/hooks";
import type { Data, Options, Page, Query } from "../../../data/api.ts";
import type { ColumnSource } from "../drawer/column-values.ts";
import { columnSource } from "../drawer/column-values.ts";
import { Rows } from "./rows.ts";

export interface RowsQuery {
  rows: Rows;
  /** Increases with every response. */
  version: number;
  /** Whether the rows are still those of the previous query. */
  isStale: boolean;
  again: () => void;
  /** All values of a column, under the search and all filters but its own. */
  column: (name: string) => ColumnSource;
}

export function useRows(data: Data, trace: string, view: string, options: Options, query: Query): RowsQuery {
  const [version, changed] = useReducer((count: number) => count + 1, 0);
  const [attempt, again] = useReducer((count: number) => count + 1, 0);
  const key = JSON.stringify([trace, view, options, query, attempt]);
  const newest = useMemo(
    () => new Rows((from, rows) => data.page(trace, view, options, { ...query, from, rows }), () => changed(undefined)),
    [key],
  );
  useEffect(() => newest.want(0, 1), [newest]);
  const ask = (asked: Query) => data.page(trace, view, options, asked);
  const column = (name: string) => columnSource([trace, view, options], ask, query, name);
  const before = useRef(newest);
  const isHere = newest.head !== null || newest.error !== null;
  if (isHere) before.current = newest;
  const rows = isHere ? newest : before.current;
  return { rows, version, isStale: rows !== newest, again: () => again(undefined), column };
}

/**
 * A page that shows which columns have something to say. A search that leaves three rows must not
 * take columns away, so it is the last one without search and filters.
 */
export function useSample(key: string, head: Page | null, isNarrowed: boolean): Page | null {
  const kept = useRef<{ key: string; page: Page | null }>({ key, page: null });
  if (kept.current.key !== key) kept.current = { key, page: null };
  if (head !== null && (!isNarrowed || kept.current.page === null)) kept.current.page = head;
  return kept.current.page ?? head;
}
