// Queries on the tables in a report: search, filter and sort as the server does
// (tests/golden/page_queries.json tests both).

import { DataError } from "./api.ts";
import type { Cell, Column, Filter, Query, Values } from "./api.ts";

/** A whole table of a view. */
export interface Table {
  columns: readonly Pick<Column, "name" | "unit">[];
  values: Readonly<Record<string, Values>>;
  rows: number;
}

export interface Matching {
  /** Matching rows in the requested order, and the requested range of them. */
  rows: Uint32Array;
  window: Uint32Array;
}

const TEXTS: ReadonlySet<string> = new Set(["name", "text", "sentence"]);

export function isText(unit: string): boolean {
  return TEXTS.has(unit);
}

export function valueAt(values: Values, row: number): Cell {
  if ("values" in values) return values.values[row] ?? null;
  const code = values.codes[row] ?? null;
  return code === null ? null : (values.texts[code] ?? null);
}

/** Returns the rows of a query. */
export function runQuery(table: Table, query: Query): Matching {
  let rows = Uint32Array.from({ length: table.rows }, (_, row) => row);
  if (query.find) rows = found(table, rows, query.find);
  for (const filter of query.where ?? []) rows = kept(table, rows, filter);
  if (query.sort) rows = sorted(table, rows, query.sort);
  const from = query.from ?? 0;
  const window = rows.subarray(from, query.rows === undefined ? undefined : from + query.rows);
  return { rows, window };
}

/** Returns the given rows of a column, in that order. */
export function gatherColumn(values: Values, rows: Uint32Array): Values {
  if ("values" in values) return { values: Array.from(rows, (row) => values.values[row] ?? null) };
  const numbers = new Map<number, number>();
  const texts: string[] = [];
  const codes = Array.from(rows, (row) => {
    const code = values.codes[row] ?? null;
    if (code === null) return null;
    const known = numbers.get(code);
    if (known !== undefined) return known;
    numbers.set(code, texts.length);
    return texts.push(values.texts[code] ?? "") - 1;
  });
  return { codes, texts };
}

/** Returns the sums of columns; null without known values. */
export function totals(
  table: Table,
  rows: Uint32Array,
  names: readonly string[],
): Record<string, number | null> {
  return Object.fromEntries(names.map((name) => [name, sum(columnOf(table, name).values, rows)]));
}

function sum(values: Values, rows: Uint32Array): number | null {
  let total = 0;
  let known = 0;
  for (const row of rows) {
    const value = valueAt(values, row);
    if (typeof value !== "number") continue;
    total += value;
    known += 1;
  }
  return known === 0 ? null : total;
}

function columnOf(table: Table, name: string): { unit: string; values: Values } {
  const column = table.columns.find((known) => known.name === name);
  const values = table.values[name];
  if (column === undefined || values === undefined) {
    const known = table.columns.map((one) => one.name).join(", ");
    throw new DataError(`there is no column \`${name}\`; there are ${known}`);
  }
  return { unit: column.unit, values };
}

/** Rows in which any text column contains a text, without case. */
function found(table: Table, rows: Uint32Array, words: string): Uint32Array<ArrayBuffer> {
  const wanted = words.toLowerCase();
  const tests = table.columns
    .filter((column) => isText(column.unit))
    .map((column) => texted(columnOf(table, column.name).values, (text) => text.includes(wanted)));
  return rows.filter((row) => tests.some((test) => test(row)));
}

/** Returns a test of a row by its lower-case text; each distinct text is tested once. */
function texted(values: Values, test: (text: string) => boolean): (row: number) => boolean {
  if ("values" in values) {
    return (row) => {
      const value = values.values[row] ?? null;
      return value !== null && test(String(value).toLowerCase());
    };
  }
  const passes = values.texts.map((text) => test(text.toLowerCase()));
  return (row) => {
    const code = values.codes[row] ?? null;
    return code !== null && passes[code] === true;
  };
}

function kept(table: Table, rows: Uint32Array, filter: Filter): Uint32Array<ArrayBuffer> {
  const { unit, values } = columnOf(table, filter.column);
  const test = isText(unit) ? textTest(values, filter) : numberTest(values, filter, unit);
  return rows.filter(test);
}

function textTest(values: Values, { column, op, value }: Filter): (row: number) => boolean {
  const wanted = value.toLowerCase();
  if (op === "has") return texted(values, (text) => text.includes(wanted));
  if (op !== "is") {
    throw new DataError(`\`${column}\` holds texts: filter it by \`is\` or \`has\``);
  }
  const is = texted(values, (text) => text === wanted);
  return wanted === "" ? (row) => valueAt(values, row) === null || is(row) : is;
}

function numberTest(values: Values, filter: Filter, unit: string): (row: number) => boolean {
  const { op, value } = filter;
  if (op === "has") {
    return (row) => (valueAt(values, row) ?? "").toString().includes(value);
  }
  if (op === "is" && value === "") return (row) => valueAt(values, row) === null;
  const limit = numeric(filter, unit);
  const passes = {
    is: (number: number) => number === limit,
    from: (number: number) => number >= limit,
    to: (number: number) => number <= limit,
  }[op];
  return (row) => {
    const cell = valueAt(values, row);
    return cell !== null && passes(Number(cell));
  };
}

const FLAGS = new Map([["true", 1], ["yes", 1], ["1", 1], ["false", 0], ["no", 0], ["0", 0]]);

function numeric({ column, value }: Filter, unit: string): number {
  const number = unit === "flag" ? FLAGS.get(value.toLowerCase()) : Number(value);
  if (number === undefined || Number.isNaN(number) || value.trim() === "") {
    throw new DataError(`\`${value}\` is no value of \`${column}\`; write a number`);
  }
  return number;
}

/** Sorts rows by a column; unknown values are last in both directions, equal rows keep their order. */
function sorted(table: Table, rows: Uint32Array, sort: string): Uint32Array<ArrayBuffer> {
  const descending = sort.startsWith("-");
  const { unit, values } = columnOf(table, descending ? sort.slice(1) : sort);
  const keys = sortKeys(values, unit);
  const way = descending ? -1 : 1;
  return Uint32Array.from(rows).sort((a, b) => {
    const [one, other] = [keys[a] ?? Number.NaN, keys[b] ?? Number.NaN];
    if (Number.isNaN(one)) return Number.isNaN(other) ? 0 : 1;
    return Number.isNaN(other) ? -1 : way * (one - other);
  });
}

/** A sort key for each row; NaN if the value is unknown. */
function sortKeys(values: Values, unit: string): Float64Array {
  if ("codes" in values) {
    const ranks = ranked(values.texts);
    return keyed(values.codes, (code) => ranks[code] ?? 0);
  }
  if (!isText(unit)) return keyed(values.values, Number);
  const texts = values.values.filter((value) => typeof value === "string");
  const distinct = [...new Set(texts)];
  const ranks = ranked(distinct);
  const places = new Map(distinct.map((text, at) => [text, ranks[at] ?? 0]));
  return keyed(values.values, (value) => places.get(String(value)) ?? 0);
}

function keyed<T>(values: readonly (T | null)[], key: (value: T) => number): Float64Array {
  return Float64Array.from(values, (value) => (value === null ? Number.NaN : key(value)));
}

/** The position of each text in the order of code points; equal texts share it. */
function ranked(texts: readonly string[]): number[] {
  const order = [...new Set(texts)].sort(byCharacters);
  const places = new Map(order.map((text, place) => [text, place]));
  return texts.map((text) => places.get(text) ?? 0);
}

/** Compares by code points as Python and Polars do; `<` compares UTF-16 units. */
function byCharacters(one: string, other: string): number {
  const end = Math.min(one.length, other.length);
  for (let at = 0; at < end; at += 1) {
    const [a, b] = [one.charCodeAt(at), other.charCodeAt(at)];
    if (a !== b) return placed(a) - placed(b);
  }
  return one.length - other.length;
}

/** Sort key of a UTF-16 unit: surrogates come after all others. */
function placed(code: number): number {
  return code >= 0xd800 && code <= 0xdfff ? code + 0x10000 : code;
}
