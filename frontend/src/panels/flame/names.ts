// The flat profile: every name with its self and total time, sorted and searched (pure).

import type { FullTable } from "../../parts/data/full-table.ts";
import { numbers, texts } from "../../parts/data/full-table.ts";

export interface NameRow {
  name: string;
  kind: string;
  self: number;
  total: number;
  /** Share of `total` of all time. */
  share: number;
}

export type NameColumn = "name" | "self" | "total" | "share";

/** The names of the table; what is merged has none. */
export function nameRows(table: FullTable): NameRow[] {
  const [kind, self, total, share] = [
    texts(table, "kind"), numbers(table, "self_time"), numbers(table, "total_time"), numbers(table, "share"),
  ];
  const rows = texts(table, "name").map((name, row) => ({
    name, kind: kind[row] ?? "other", self: self[row] ?? 0, total: total[row] ?? 0, share: share[row] ?? 0,
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

/** The name that is chosen, if the list has it. */
export function chosenName(rows: readonly NameRow[], name: string | undefined, kind: string | undefined): NameRow | undefined {
  if (name === undefined) return undefined;
  return rows.find((row) => row.name === name && (kind === undefined || row.kind === kind));
}
