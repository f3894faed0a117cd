// Cells of a page of rows by column and row.

import type { Cell, Page } from "../../../data/api.ts";
import { valueAt } from "../../../data/table.ts";

export interface CellReader {
  cell(column: string, row: number): Cell;
  /** Empty where it is unknown. */
  text(column: string, row: number): string;
  /** NaN where it is unknown. */
  number(column: string, row: number): number;
}

export function cellReader(page: Page): CellReader {
  const read = (column: string, row: number) => {
    const values = page.columns[column];
    return values === undefined ? null : valueAt(values, row);
  };
  return {
    cell: read,
    text: (column, row) => String(read(column, row) ?? ""),
    number: (column, row) => {
      const value = read(column, row);
      return typeof value === "number" ? value : Number.NaN;
    },
  };
}
