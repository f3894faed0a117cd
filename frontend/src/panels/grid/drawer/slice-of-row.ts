// The slice that a row of a table is about, or the longest of its slices.

import type { Column } from "../../../data/api.ts";
import type { ValueOf } from "./origins.ts";

/** Views whose column `id` has ids of slices. */
const WITH_SLICE_IDS: ReadonlySet<string> = new Set(["syncs", "occurrences", "selection", "matches"]);

/** Null if the row names no slice. */
export function sliceOfRow(view: string, columns: readonly Pick<Column, "name" | "unit">[], valueOf: ValueOf): number | null {
  const name = columns.some((column) => column.name === "longest" && column.unit === "id") ? "longest" : WITH_SLICE_IDS.has(view) ? "id" : null;
  const id = name === null ? null : valueOf(name);
  return typeof id === "number" && id >= 0 ? id : null;
}
