// Names, widths and visibility of a table's columns.

import type { Cell, Column, Page, Unit } from "../../../data/api.ts";
import { isText, valueAt } from "../../../data/table.ts";
import { sentLabel } from "../../../parts/data/labels.ts";
import { endings } from "./endings.ts";

/** A shown column and its place. */
export interface PlacedColumn extends Column {
  label: string;
  isNumber: boolean;
  left: number;
  width: number;
  /** The end that a cell shows of names that begin and end like others. */
  endings: ReadonlyMap<string, string>;
}

const WORDS: Readonly<Record<string, string>> = {
  cpu: "CPU", gpu: "GPU", flops: "FLOPs", sm: "SM", id: "ID", api: "API", h2d: "H2D", d2h: "D2H",
};

/** Characters at the end of a name or path that stay visible. */
export const TAIL = 14;
const NO_ENDINGS: ReadonlyMap<string, string> = new Map();

/** A column's name as a heading: `self_cpu_time_total` is "Self CPU time total". */
export function labelOf(name: string): string {
  const words = name.split("_").map((word) => WORDS[word] ?? word);
  const text = words.join(" ");
  return text.charAt(0).toUpperCase() + text.slice(1);
}

const MEANINGS: Readonly<Record<Unit, string>> = {
  "ns": "a duration",
  "instant": "time since the begin of the trace",
  "bytes": "bytes, in binary steps",
  "count": "a count",
  "flops": "floating-point operations",
  "flops/s": "operations a second",
  "bytes/s": "bytes a second",
  "flops/byte": "operations for each byte moved",
  "ratio": "a share in percent",
  "percent": "a share in percent",
  "gb/s": "gigabytes a second",
  "times": "a factor",
  "id": "an id",
  "name": "a name",
  "text": "a text",
  "sentence": "a sentence",
  "flag": "yes or no",
};

export function meaningOf(unit: Unit): string {
  return MEANINGS[unit];
}

const WIDTHS: Partial<Record<Unit, number>> = {
  "id": 68, "flag": 68, "count": 82, "ratio": 84, "percent": 84, "ns": 104, "instant": 104, "bytes": 100,
  "flops": 92, "flops/s": 118, "bytes/s": 108, "flops/byte": 118, "gb/s": 100,
};
const CHARACTER = 7.2;
const PADDING = 22;
/** Pixels of a table's frame and scroll bar. */
const EDGE = 18;
/** Rows that are sampled to estimate the width of texts. */
const SAMPLE = 60;

/** The widest first column, and which share of the panel it may take: it stays in sight. */
const FIRST_COLUMN = 440;
const FIRST_SHARE = 0.4;

/** A width by the kind of content, and for texts by the content itself; `room` is the panel's. */
export function widthOf(column: Column, page: Page | null, isFirst: boolean, room = Number.POSITIVE_INFINITY): number {
  const heading = PADDING + 8 + CHARACTER * inTwoLines(labelOf(column.name));
  const fixed = WIDTHS[column.unit];
  if (fixed !== undefined) return Math.round(Math.max(fixed, heading));
  const [least, most] = isFirst ? [Math.min(180, room * FIRST_SHARE), Math.min(FIRST_COLUMN, room * FIRST_SHARE)] : column.unit === "sentence" ? [220, 520] : [84, 280];
  const needed = PADDING + CHARACTER * longestText(column, page);
  return Math.round(Math.min(Math.max(needed, heading, least), most));
}

/** The width of a heading in characters, wrapped optimally. */
function inTwoLines(label: string): number {
  const words = label.split(" ");
  const folds = words.map((_, at) => {
    const [above, below] = [words.slice(0, at + 1).join(" "), words.slice(at + 1).join(" ")];
    return Math.max(above.length, below.length);
  });
  return Math.min(...folds);
}

function longestText(column: Column, page: Page | null): number {
  return sampled(column, page).reduce<number>((most, cell) => Math.max(most, shownLength(column, String(cell ?? ""))), 0);
}

function shownLength(column: Column, value: string): number {
  return (sentLabel(column.labels, value)?.text ?? value).length;
}

function sampled(column: Column, page: Page | null, rows = SAMPLE): Cell[] {
  const values = page?.columns[column.name];
  if (page === null || values === undefined) return [];
  return Array.from({ length: Math.min(page.rows, rows) }, (_, row) => valueAt(values, row));
}

/** Columns of ids, which are only used for links. */
const LEADING: ReadonlySet<string> = new Set([
  "id", "parent", "first", "longest", "launch", "track", "address",
]);

/** How many columns are shown unless others are chosen, where a table has more than a few beyond. */
const MAIN_COLUMNS = 8;
const FEW_BEYOND = 2;

/** The first columns with values, which are shown unless others are chosen; `kept` are among them. */
export function mainColumns(
  columns: readonly Column[],
  page: Page | null,
  kept: readonly string[] = [],
): string[] {
  const all = columnsWithValues(columns, page, kept);
  if (all.length <= MAIN_COLUMNS + FEW_BEYOND) return all;
  return all.filter((name, at) => at < MAIN_COLUMNS || kept.includes(name));
}

/** As in the terminal, without those that are unknown or zero throughout. `kept` are among them. */
export function columnsWithValues(
  columns: readonly Column[],
  page: Page | null,
  kept: readonly string[] = [],
): string[] {
  const shown = columns.filter((column, at) => {
    if (at === 0 || kept.includes(column.name)) return true;
    if (column.unit === "id" && LEADING.has(column.name)) return false;
    return page === null || page.rows === 0 || !isSilent(column, page);
  });
  return shown.map((column) => column.name);
}

function isSilent(column: Column, page: Page): boolean {
  const cells = sampled(column, page, page.rows);
  const zero = isQuantity(column.unit) && column.unit !== "flag" ? 0 : null;
  return cells.every((cell) => cell === null || cell === zero);
}

function isQuantity(unit: Unit): boolean {
  return !isText(unit) && unit !== "id" && unit !== "flag" && unit !== "instant";
}

/** The columns from left to right in a panel that is `room` pixels wide; names take what the others leave. */
export function placeColumns(
  columns: readonly Column[],
  names: readonly string[],
  widths: Readonly<Record<string, number>>,
  page: Page | null,
  room?: number,
): PlacedColumn[] {
  const known = names.flatMap((name) => columns.find((column) => column.name === name) ?? []);
  const sizes = known.map((column, at) => widths[column.name] ?? widthOf(column, page, at === 0, room));
  const free = (room ?? 0) - EDGE - sizes.reduce((sum, size) => sum + size, 0);
  const [first] = known;
  if (first !== undefined && free > 0 && widths[first.name] === undefined && isText(first.unit)) {
    const lacking = Math.ceil(PADDING + CHARACTER * longestText(first, page)) - (sizes[0] ?? 0);
    sizes[0] = (sizes[0] ?? 0) + Math.max(Math.min(free, lacking), 0);
  }
  let left = 0;
  const found: PlacedColumn[] = [];
  for (const [at, column] of known.entries()) {
    const { name } = column;
    const isFirst = at === 0;
    const width = sizes[at] ?? 0;
    const fit = (width - PADDING) / CHARACTER;
    const ends = isFirst ? endings(sampled(column, page, page?.rows).map(String), TAIL, fit) : NO_ENDINGS;
    found.push({ ...column, label: labelOf(name), isNumber: !isText(column.unit), left, width, endings: ends });
    left += width;
  }
  return found;
}

/** The range of visible columns; the first column is always visible. */
export function columnsInView(columns: readonly PlacedColumn[], left: number, width: number): [number, number] {
  const stuck = columns[0]?.width ?? 0;
  let from = 1;
  while (from < columns.length - 1 && right(columns[from]) <= left + stuck) from += 1;
  let to = from;
  while (to < columns.length - 1 && right(columns[to]) < left + width) to += 1;
  return [from, to];
}

function right(column: PlacedColumn | undefined): number {
  return column === undefined ? 0 : column.left + column.width;
}

/** Whether a cell is 0 or unknown, and drawn muted. */
export function isNothing(column: Pick<Column, "unit">, value: Cell): boolean {
  return value === 0 && isQuantity(column.unit);
}

/** Whether the numbers of a column may have bars. */
export function hasBar(column: Pick<Column, "unit">): boolean {
  return column.unit === "ns" || column.unit === "ratio";
}

/** The width of a number's bar as a share of the total; null for none. */
export function barOf(column: Pick<Column, "unit">, value: Cell, total: number | null | undefined): number | null {
  if (typeof value !== "number" || value <= 0) return null;
  if (column.unit === "ratio") return Math.min(value, 1);
  if (column.unit !== "ns" || !total || total <= 0) return null;
  return Math.min(value / total, 1);
}
