// Two tables by their keys as one, and what is said of two recordings (pure).

import type { Cell, Unit } from "../../api.ts";
import type { Whole } from "../../parts/whole.ts";
import { cell, number, textAt } from "../../parts/whole.ts";

export interface Row {
  key: readonly Cell[];
  a: number | null;
  b: number | null;
  /** What is in one alone differs by all of it. */
  difference: number;
  /** B by A; null where one of them has none, or less than none. */
  ratio: number | null;
  unit: Unit;
  /** Of what was compared by its steps: its share, what is said of it, and how surely. */
  told?: { change: number | null; verdict: string | null; low: number | null; high: number | null };
}

/** The rows of a table of differences; texts and counts of some columns are their keys. */
export function differenceRows(table: Whole, keys: readonly string[]): Row[] {
  return Array.from({ length: table.rows }, (_, row) => {
    const of = (name: string) => number(table, name, row);
    const told = { change: of("change"), verdict: textAt(table, "verdict", row), low: of("low"), high: of("high") };
    const found = rowOf(keys.map((name) => cell(table, name, row)), of("before"), of("after"), "ns");
    return { ...found, difference: of("difference") ?? 0, told };
  });
}

/** The sums of a measure by key, divided: by the steps, or by one. */
export function sums(table: Whole, columns: readonly string[], measure: string, by: number): Map<string, { key: Cell[]; value: number }> {
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

export function merged(
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

/** Rows in an order: differences by their size, whichever way; what has no value last. */
export function sorted(rows: readonly Row[], by: Sort, descending: boolean): Row[] {
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
export function sameFiles(a: readonly string[], b: readonly string[]): Map<string, string> {
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

/** A table with its files named as in another. */
export function renamed(table: Whole, same: ReadonlyMap<string, string>): Whole {
  const { file } = table.columns;
  if (file === undefined || same.size === 0) return table;
  const named = file.map((known) => (typeof known === "string" ? (same.get(known) ?? known) : known));
  return { ...table, columns: { ...table.columns, file: named } };
}

export interface Steps {
  /** Steps that were recorded; 0 if nothing says where one begins. */
  found: number;
  /** Those that count: not the first, no partial ones, no outliers. */
  counted: number;
}

export function stepsOf(steps: Whole): Steps {
  const rows = Array.from({ length: steps.rows }, (_, row) => row);
  const known = rows.filter((row) => textAt(steps, "source", row) !== "window");
  return { found: known.length, counted: known.filter((row) => cell(steps, "counted", row) === true).length };
}

/** Sums by the step where both recordings have steps; else of all that was recorded. */
export function divisors(perStep: boolean, steps: readonly [Steps, Steps], counts: boolean): [number, number] | null {
  const of = (one: Steps) => (counts ? one.counted : one.found);
  const [a, b] = [of(steps[0]), of(steps[1])];
  return perStep && a > 0 && b > 0 ? [a, b] : null;
}

/** The rows of two `overview` tables: each has a unit of its own. */
export function overviewRows(a: Whole, b: Whole): Row[] {
  const of = (table: Whole) => {
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
