// The flat profile: every name with its self and total time, sorted and searched (pure).

import type { FullTable } from "../../parts/data/full-table.ts";
import { numbers, textAt, number, texts } from "../../parts/data/full-table.ts";

export interface NameRow {
  name: string;
  kind: string;
  self: number;
  total: number;
  /** Share of `total` of all time. */
  share: number;
  /** Where the function of a frame is defined. */
  file: string | null;
  line: number | null;
}

export type NameColumn = "name" | "self" | "total" | "share";

/** The names of the table; what is merged has none. */
export function nameRows(table: FullTable): NameRow[] {
  const [kind, self, total, share] = [
    texts(table, "kind"), numbers(table, "self_time"), numbers(table, "total_time"), numbers(table, "share"),
  ];
  const rows = texts(table, "name").map((name, row) => ({
    name, kind: kind[row] ?? "other", self: self[row] ?? 0, total: total[row] ?? 0, share: share[row] ?? 0,
    file: textAt(table, "file", row), line: number(table, "line", row),
  }));
  return rows.filter((row) => row.name !== "(other)");
}

/** The column to sort by, with "-" before it for descending. */
export function sortOf(word: string | undefined): { column: NameColumn; descending: boolean } {
  const column = (word ?? "").replace(/^-/, "");
  const isKnown = column === "name" || column === "self" || column === "total" || column === "share";
  return isKnown ? { column, descending: word?.startsWith("-") === true } : { column: "self", descending: true };
}

/** The rows with the text in their name, in order. */
export function sortedNames(rows: readonly NameRow[], word: string | undefined, find: string): NameRow[] {
  const { column, descending } = sortOf(word);
  const wanted = find.toLowerCase();
  const sign = descending ? -1 : 1;
  const compared = (a: NameRow, b: NameRow) => {
    if (column === "name") return a.name < b.name ? -1 : Number(a.name > b.name);
    return a[column] - b[column];
  };
  return rows.filter((row) => row.name.toLowerCase().includes(wanted)).toSorted((a, b) => sign * compared(a, b));
}

/** A line of source, and the function that contains it if that is known. */
export interface SourceLine {
  file: string;
  line: number;
  function: string | undefined;
}

/** The frame whose function contains a line: of those with its name the last that begins above it. */
export function nameOfLine(rows: readonly NameRow[], at: SourceLine): NameRow | undefined {
  const above = rows.filter((row) => row.file === at.file && row.line !== null && row.line <= at.line);
  const named = above.filter((row) => at.function === undefined || row.name.endsWith(`): ${at.function}`));
  return named.toSorted((a, b) => (b.line ?? 0) - (a.line ?? 0))[0];
}

/** The name that is chosen, if the list has it. */
export function chosenName(rows: readonly NameRow[], name: string | undefined, kind: string | undefined): NameRow | undefined {
  if (name === undefined) return undefined;
  return rows.find((row) => row.name === name && (kind === undefined || row.kind === kind));
}
