// How the values of a column are spread: figures, bins and the most frequent values (pure).

import type { Cell, Filter, Unit } from "../../../data/api.ts";
import { isText } from "../../../data/table.ts";
import { parseQuantity, text } from "../../../units.ts";

export type Scale = "linear" | "log";

export interface Spread {
  /** The known values in ascending order, and how many are unknown. */
  sorted: Float64Array;
  unknown: number;
  sum: number;
}

export interface SpreadBin {
  from: number;
  to: number;
  count: number;
  sum: number;
}

/** So many bins at most. */
const BINS = 44;
/** Values that differ by more than this factor are first shown on a scale of logarithms. */
const WIDE = 50;

export function spreadOf(values: readonly Cell[]): Spread {
  const numbers = values.flatMap((value) => (value === null ? [] : [Number(value)])).filter(Number.isFinite);
  const sorted = Float64Array.from(numbers).sort();
  return { sorted, unknown: values.length - sorted.length, sum: sorted.reduce((total, value) => total + value, 0) };
}

/** The value below which a share of the values lies, between two values in proportion; null without values. */
export function quantile({ sorted }: Spread, share: number): number | null {
  if (sorted.length === 0) return null;
  const at = share * (sorted.length - 1);
  const [low, high] = [sorted[Math.floor(at)] ?? 0, sorted[Math.ceil(at)] ?? 0];
  return low + (high - low) * (at - Math.floor(at));
}

/** The scale to begin with: of logarithms for positive values of several magnitudes. */
export function scaleAtFirst(spread: Spread): Scale {
  const [low, high] = [quantile(spread, 0.05) ?? 0, quantile(spread, 0.95) ?? 0];
  return low > 0 && high / low > WIDE ? "log" : "linear";
}

/** The least value that a scale shows: logarithms have no place for 0 and less. */
function firstOn({ sorted }: Spread, scale: Scale): number {
  return scale === "linear" ? 0 : indexOf(sorted, 0, true);
}

/** How many known values are not on the scale. */
export function countOffScale(spread: Spread, scale: Scale): number {
  return firstOn(spread, scale);
}

export function binsOfSpread(spread: Spread, scale: Scale): SpreadBin[] {
  const { sorted } = spread;
  const first = firstOn(spread, scale);
  if (first >= sorted.length) return [];
  const edges = edgesOf(sorted.subarray(first), scale);
  const bins: SpreadBin[] = [];
  let at = first;
  for (let number = 0; number + 1 < edges.length; number += 1) {
    const [from = 0, to = 0] = [edges[number], edges[number + 1]];
    const isLast = number + 2 === edges.length;
    let sum = 0;
    const begin = at;
    for (; at < sorted.length && ((sorted[at] ?? 0) < to || isLast); at += 1) sum += sorted[at] ?? 0;
    bins.push({ from, to, count: at - begin, sum });
  }
  return bins;
}

function edgesOf(sorted: Float64Array, scale: Scale): number[] {
  const [least, most] = [sorted[0] ?? 0, sorted.at(-1) ?? 0];
  if (least === most) return [least, least === 0 ? 1 : least + Math.abs(least) / 10];
  if (scale === "log") {
    const [low, high] = [Math.log10(least), Math.log10(most)];
    return Array.from({ length: BINS + 1 }, (_, at) => (at === BINS ? most : 10 ** (low + ((high - low) * at) / BINS)));
  }
  const range = most - least;
  const isWhole = range < BINS && sorted.every(Number.isInteger); // each number has a bin of its own
  if (isWhole) return Array.from({ length: range + 2 }, (_, at) => least + at);
  return Array.from({ length: BINS + 1 }, (_, at) => (at === BINS ? most : least + (range * at) / BINS));
}

/** How many values lie between two numbers, both included, and their sum. */
export function within({ sorted }: Spread, low: number, high: number): { count: number; sum: number } {
  const chosen = sorted.subarray(indexOf(sorted, low, false), indexOf(sorted, high, true));
  return { count: chosen.length, sum: chosen.reduce((total, value) => total + value, 0) };
}

/** The first place whose value is at least a number, or more than it. */
function indexOf(sorted: Float64Array, value: number, isAbove: boolean): number {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    const found = sorted[middle] ?? 0;
    if (found < value || (isAbove && found === value)) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Filters for the values between two numbers, rounded outward to three digits and with units. */
export function filtersBetween(column: string, unit: Unit, low: number, high: number): Filter[] {
  return [
    { column, op: "from", value: boundWords(outward(low, Math.floor), unit, (told, value) => told <= value) },
    { column, op: "to", value: boundWords(outward(high, Math.ceil), unit, (told, value) => told >= value) },
  ];
}

function outward(value: number, round: (value: number) => number): number {
  if (value === 0) return 0;
  const step = 10 ** (Math.floor(Math.log10(Math.abs(value))) - 2);
  const found = step >= 1 ? round(value / step) * step : round(value / step) / Math.round(1 / step);
  return Math.abs(found - value) < step * 1e-9 ? value : found;
}

/** A bound as people write it, if that means the same and leaves nothing out. */
function boundWords(value: number, unit: Unit, isOutside: (told: number, value: number) => boolean): string {
  const words = text(value, unit);
  const told = parseQuantity(words, unit);
  const isSame = told !== null && Math.abs(told - value) <= 1e-9 * Math.abs(value) && isOutside(told, value);
  return isSame ? words : String(value);
}

/** The range that filters on a column leave; infinite where they set no bound. */
export function rangeOf(filters: readonly Filter[], unit: Unit): { low: number; high: number } | null {
  const bound = (op: Filter["op"]) => filters.filter((filter) => filter.op === op).flatMap(({ value }) => parseQuantity(value, unit) ?? []);
  const [low, high] = [bound("from"), bound("to")];
  if (low.length === 0 && high.length === 0) return null;
  return { low: Math.max(Number.NEGATIVE_INFINITY, ...low), high: Math.min(Number.POSITIVE_INFINITY, ...high) };
}

export interface Frequent {
  value: Cell;
  count: number;
}

/** The distinct values with how often each is there, the most frequent first. */
export function frequent(values: readonly Cell[]): Frequent[] {
  const counts = new Map<Cell, number>();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  const found = [...counts].map(([value, count]) => ({ value, count }));
  return found.sort((one, other) => other.count - one.count || String(one.value).localeCompare(String(other.value), "en"));
}

/** More numbers without a size, such as those of steps, are a histogram and no list. */
const FEW = 12;

/** Whether a column is shown as a list of its values, and not as a histogram. */
export function isListed(unit: Unit, values: readonly Cell[]): boolean {
  if (isText(unit) || unit === "flag") return true;
  return unit === "id" && new Set(values.slice(0, 10_000)).size <= FEW;
}
