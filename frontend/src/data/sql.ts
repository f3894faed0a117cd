// Queries in SQL: what one can read, and its result.

import { DataError } from "./api.ts";
import type { Column, Page } from "./api.ts";

export interface SqlColumn extends Column {
  /** What the values are: `integer`, `number`, `text`, `flag` or `list`. */
  type: string;
}

/** A table of the trace or a view, by its name in a query. */
export interface SqlRelation {
  name: string;
  kind: "table" | "view";
  doc: string;
  /** The number of rows; null if it is not known before a query computes the view. */
  rows: number | null;
  columns: SqlColumn[];
}

export interface SqlExample {
  question: string;
  query: string;
  /** A chart of the result as in the address of the page; empty for a table. */
  chart: string;
}

export interface SqlSchema {
  relations: SqlRelation[];
  examples: SqlExample[];
}

export interface SqlResult {
  columns: SqlColumn[];
  page: Page;
  /** The number of rows of the result, of which the page may have fewer. */
  row_count: number;
  seconds: number;
}

/** The part of a query that an error is about. */
export interface SqlPlace {
  line: number;
  column: number;
  start: number;
  end: number;
}

/** A query without a result: one sentence, and its place in the query if it has one. */
export class SqlError extends DataError {
  readonly place: SqlPlace | null;

  constructor(sentence: string, place: SqlPlace | null) {
    super(sentence);
    this.place = place;
  }
}
