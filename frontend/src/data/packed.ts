// What a report carries, unpacked: deflated JSON in base64, columns in few words. The other end is
// reports/html/packing.py; tests/golden/packed_columns.json holds both to the same.

import { DataError } from "./api.ts";
import type { Cell, Page, Values } from "./api.ts";

/** A compressed column; `like` and `beside` name an earlier column. */
export type PackedValues =
  | Values
  | { same: Cell }
  | { like: string }
  | { steps: number[] }
  | { beside: string; more: (number | null)[] };

export type PackedPage = Omit<Page, "columns"> & { columns: Record<string, PackedValues> };

export async function decompress<T>(packed: string): Promise<T> {
  if (typeof DecompressionStream === "undefined") {
    throw new DataError("this browser is too old to read the report: it needs one of 2023 or later");
  }
  const deflated = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
  const stream = new Blob([deflated]).stream().pipeThrough(new DecompressionStream("deflate"));
  return (await new Response(stream).json()) as T;
}

export function decodeColumns(packed: PackedPage): Record<string, Values> {
  const found: Record<string, Values> = {};
  for (const [name, column] of Object.entries(packed.columns)) {
    found[name] = valuesOf(column, found, packed.rows);
  }
  return found;
}

function valuesOf(
  column: PackedValues,
  before: Readonly<Record<string, Values>>,
  rows: number,
): Values {
  if ("same" in column) return { values: new Array<Cell>(rows).fill(column.same) };
  if ("like" in column) return before[column.like] ?? { values: [] };
  if ("steps" in column) return { values: summed(column.steps) };
  if ("beside" in column) return { values: added(column.more, before[column.beside]) };
  return column;
}

function summed(steps: readonly number[]): number[] {
  let value = 0;
  return steps.map((step) => (value += step));
}

function added(more: readonly (number | null)[], other: Values | undefined): Cell[] {
  const beside = other !== undefined && "values" in other ? other.values : [];
  return more.map((value, row) => (value === null ? null : value + Number(beside[row])));
}
