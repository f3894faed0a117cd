// Whole columns of a page of rows as arrays: a tile has up to 400,000 rows, and a frame 16 ms.

import type { Page } from "../../../data/api.ts";

/** NaN where it is unknown. */
export function columnNumbers(page: Page, name: string): Float64Array {
  const found = new Float64Array(page.rows).fill(Number.NaN);
  const column = page.columns[name];
  if (column === undefined || !("values" in column)) return found;
  const { values } = column;
  for (let row = 0; row < found.length; row++) {
    const value = values[row];
    if (typeof value === "number") found[row] = value;
  }
  return found;
}

/** The different texts of a column, and which of them each row has; the first, "", is that of unknown ones. */
export interface ColumnTexts {
  texts: readonly string[];
  codes: Int32Array;
}

export function columnTexts(page: Page, name: string): ColumnTexts {
  const codes = new Int32Array(page.rows);
  const column = page.columns[name];
  const known = new Map([["", 0]]);
  const codeOf = (text: string) => {
    const code = known.get(text) ?? known.size;
    if (code === known.size) known.set(text, code);
    return code;
  };
  if (column !== undefined && "codes" in column) {
    const own = column.texts.map(codeOf); // of several pages, texts are there more than once
    for (let row = 0; row < codes.length; row++) codes[row] = own[column.codes[row] ?? -1] ?? 0;
  } else if (column !== undefined) {
    for (let row = 0; row < codes.length; row++) codes[row] = codeOf(String(column.values[row] ?? ""));
  }
  return { texts: [...known.keys()], codes };
}

/** The numbers of some rows. */
export function gathered(numbers: Float64Array, rows: readonly number[]): Float64Array {
  const found = new Float64Array(rows.length);
  for (let at = 0; at < found.length; at++) found[at] = numbers[rows[at] as number] as number;
  return found;
}
