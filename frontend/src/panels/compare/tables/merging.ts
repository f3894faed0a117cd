// Merges two tables by keys (pure).

import type { Cell, Unit } from "../../../data/api.ts";
import type { FullTable } from "../../../parts/data/full-table.ts";
import { cell, number, textAt } from "../../../parts/data/full-table.ts";

export interface Row {
  key: readonly Cell[];
  a: number | null;
  b: number | null;
  /** After minus before; a missing side counts as 0. */
  difference: number;
  /** The ratio of after to before; null if one is missing or negative. */
  ratio: number | null;
  unit: Unit;
  /** Share, verdict and interval, for rows compared per step. */
  told?: { change: number | null; verdict: string | null; low: number | null; high: number | null };
}

/** The rows of a table of differences, with some columns as keys. */
export function differenceRows(table: FullTable, keys: readonly string[]): Row[] {
  return Array.from({ length: table.rows }, (_, row) => {
    const of = (name: string) => number(table, name, row);
    const told = { change: of("change"), verdict: textAt(table, "verdict", row), low: of("low"), high: of("high") };
    const found = rowOf(keys.map((name) => cell(table, name, row)), of("before"), of("after"), "ns");
    return { ...found, difference: of("difference") ?? found.difference, told };
  });
}

/** The sums of a measure by key, divided by the number of steps. */
export function sums(table: FullTable, columns: readonly string[], measure: string, by: number): Map<string, { key: Cell[]; value: number }> {
  const found = new Map<string, { key: Cell[]; value: number }>();
  for (let row = 0; row < table.rows; row++) {
    const value = number(table, measure, row);
    if (value === null) continue;
    const key = columns.map((name) => cell(table, name, row));
    const word = JSON.stringify(key);
    const known = found.get(word);
    if (known === undefined) found.set(word, { key, value: value / by });
    else known.value += value / by;
  }
  return found;
}

export function mergeRows(
  a: ReadonlyMap<string, { key: Cell[]; value: number }>,
  b: ReadonlyMap<string, { key: Cell[]; value: number }>,
  unit: Unit,
): Row[] {
  const words = new Set([...a.keys(), ...b.keys()]);
  return [...words].map((word) => {
    const [one, other] = [a.get(word), b.get(word)];
    return rowOf((one ?? other)?.key ?? [], one?.value ?? null, other?.value ?? null, unit);
  }).filter((row) => row.a !== 0 || row.b !== 0);
}

export function rowOf(key: readonly Cell[], a: number | null, b: number | null, unit: Unit): Row {
  // Of a lag, say, which may be negative, no multiple means anything.
  const ratio = a === null || b === null || a <= 0 || b < 0 ? null : b / a;
  return { key, a, b, difference: (b ?? 0) - (a ?? 0), ratio, unit };
}

export type Sort = "key" | "a" | "b" | "difference" | "ratio";

/** Sorts rows; differences by absolute value, unknown values last. */
export function sortRows(rows: readonly Row[], by: Sort, descending: boolean): Row[] {
  const sign = descending ? -1 : 1;
  const value = (row: Row) => (by === "difference" ? Math.abs(row.difference) : by === "key" ? 0 : row[by]);
  return rows.toSorted((one, other) => {
    if (by === "key") return sign * compared(one.key.join(" "), other.key.join(" "));
    const [x, y] = [value(one), value(other)];
    if (x === null || y === null) return Number(x === null) - Number(y === null);
    return sign * (x - y);
  });
}

function compared(a: string, b: string): number {
  return a < b ? -1 : Number(a > b);
}

/**
 * Names of B's files as A names them: a file that only one recording knows by that path is the one
 * of the same name in the other, if there is only one there. So a program that ran from another
 * folder is still the same program.
 */
export function matchFiles(a: readonly string[], b: readonly string[]): Map<string, string> {
  const [inA, inB] = [new Set(a), new Set(b)];
  const last = (file: string) => file.slice(file.lastIndexOf("/") + 1);
  const alone = (files: ReadonlySet<string>, others: ReadonlySet<string>) => {
    const found = new Map<string, string | null>();
    for (const file of files) {
      if (!others.has(file)) found.set(last(file), found.has(last(file)) ? null : file);
    }
    return found;
  };
  const [ofA, ofB] = [alone(inA, inB), alone(inB, inA)];
  const same = new Map<string, string>();
  for (const [name, file] of ofB) {
    const other = ofA.get(name);
    if (file && other) same.set(file, other);
  }
  return same;
}

/** A table with its files renamed as in another. */
export function renameFiles(table: FullTable, same: ReadonlyMap<string, string>): FullTable {
  const { file } = table.columns;
  if (file === undefined || same.size === 0) return table;
  const named = file.map((known) => (typeof known === "string" ? (same.get(known) ?? known) : known));
  return { ...table, columns: { ...table.columns, file: named } };
}

export interface Steps {
  /** The number of recorded steps; 0 if unknown. */
  found: number;
  /** The number of counted steps: without the first, partial steps and outliers. */
  counted: number;
}

export function stepsOf(steps: FullTable): Steps {
  const rows = Array.from({ length: steps.rows }, (_, row) => row);
  const known = rows.filter((row) => textAt(steps, "source", row) !== "window");
  return { found: known.length, counted: known.filter((row) => cell(steps, "counted", row) === true).length };
}

/** The divisors of sums: the numbers of steps, or 1 if a recording has none. */
export function divisors(perStep: boolean, steps: readonly [Steps, Steps], counts: boolean): [number, number] | null {
  const of = (one: Steps) => (counts ? one.counted : one.found);
  const [a, b] = [of(steps[0]), of(steps[1])];
  return perStep && a > 0 && b > 0 ? [a, b] : null;
}

/** The merged rows of two `overview` tables, each with its own unit. */
export function overviewRows(a: FullTable, b: FullTable): Row[] {
  const of = (table: FullTable) => {
    const found = new Map<string, { key: Cell[]; value: number | null; unit: Unit }>();
    for (let row = 0; row < table.rows; row++) {
      const key = ["metric", "section", "device"].map((name) => cell(table, name, row));
      const unit = (textAt(table, "unit", row) ?? "text") as Unit;
      if (unit !== "text" && unit !== "id") found.set(JSON.stringify(key), { key, value: number(table, "value", row), unit });
    }
    return found;
  };
  const [one, other] = [of(a), of(b)];
  const words = [...new Set([...one.keys(), ...other.keys()])];
  return words.map((word) => {
    const [x, y] = [one.get(word), other.get(word)];
    return rowOf((x ?? y)?.key ?? [], x?.value ?? null, y?.value ?? null, (x ?? y)?.unit ?? "text");
  });
}
