// Formats quantities with units, and parses them. The output equals that of units.py;
// tests/golden/units.json tests both.

import type { Cell, Unit } from "./data/api.ts";

const TIMES: readonly Step[] = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"]];
const BYTES: readonly Step[] = [[2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]];
const RATES: readonly Step[] = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];
const COUNTS: readonly Step[] = [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"]];

type Step = readonly [size: number, unit: string];

/** The text of an unknown value. */
export const UNKNOWN = "-";

/** A number with the given decimals, rounded half to even. */
export function fixed(value: number, digits: number): string {
  const written = Math.abs(value).toFixed(digits);
  const sign = value < 0 || Object.is(value, -0) ? "-" : "";
  return sign + (isHalf(Math.abs(value), digits) ? toEven(Math.abs(value), digits, written) : written);
}

/** Whether a number is exactly halfway between two numbers with the given decimals. */
function isHalf(value: number, digits: number): boolean {
  const next = value.toFixed(digits + 1);
  return next.endsWith("5") && /^50*$/.test(value.toFixed(60).split(".")[1]?.slice(digits) ?? "");
}

/** `toFixed` rounds half up: subtract one unit in the last place if it is odd. */
function toEven(value: number, digits: number, up: string): string {
  const last = Number(up.at(-1));
  return last % 2 === 0 ? up : (value - 0.5 * 10 ** -digits).toFixed(digits);
}

function inSteps(value: number, steps: readonly Step[]): Step | undefined {
  return steps.find(([size]) => Math.abs(value) >= size);
}

/** A number with three significant digits, and at most three decimals. */
export function threeDigitsText(value: number): string {
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size < 0.0005) return value > 0 ? "<0.001" : ">-0.001";
  return grouped(fixed(value, size >= 99.95 ? 0 : size >= 9.995 ? 1 : size >= LEAST_WITH_THREE_DIGITS ? 2 : 3));
}

/** The smallest number that three significant digits do not write below 1. */
const LEAST_WITH_THREE_DIGITS = 0.9995;

function inStepsOfThreeDigits(value: number, steps: readonly Step[]): string | null {
  const step = inSteps(value, steps);
  return step ? `${threeDigitsText(value / step[0])} ${step[1]}` : null;
}

/** A duration with three significant digits, as people compare them. */
export function timeText(nanoseconds: number): string {
  if (nanoseconds === 0) return "0 ms";
  const step = TIMES.find(([size]) => Math.abs(nanoseconds / size) >= LEAST_WITH_THREE_DIGITS);
  if (step) return `${threeDigitsText(nanoseconds / step[0])} ${step[1]}`;
  if (Math.abs(nanoseconds) < LEAST_WITH_THREE_DIGITS) return nanoseconds > 0 ? "<1 ns" : ">-1 ns";
  return `${fixed(nanoseconds, 0)} ns`;
}

/** From here on instants are written in s. */
const LONGEST_INSTANT_IN_MS = 10e9;

/** An instant to the microsecond, from 10 s on to the millisecond: three digits would not tell it from others. */
export function instantText(nanoseconds: number): string {
  const isLong = Math.abs(nanoseconds) >= LONGEST_INSTANT_IN_MS;
  const written = grouped(fixed(nanoseconds / (isLong ? 1e9 : 1e6), 3));
  return `${written === "-0.000" ? "0.000" : written} ${isLong ? "s" : "ms"}`;
}

export function bytesText(size: number): string {
  return inStepsOfThreeDigits(size, BYTES) ?? `${grouped(unsigned(fixed(size, 0)))} B`;
}

/** A count, whole below a million and scaled above. */
export function countText(count: number): string {
  return inStepsOfThreeDigits(count, COUNTS) ?? grouped(unsigned(fixed(count, 0)));
}

/** A count with its noun: `1 step`, `1,200 steps`. */
export function countedText(count: number, noun: string): string {
  return `${countText(count)} ${noun}${count === 1 ? "" : "s"}`;
}

/** Milliseconds as a duration. */
export function millisecondsText(milliseconds: number): string {
  return timeText(milliseconds * 1e6);
}

/** A rate per second with decimal prefixes, as in vendors' specifications. */
export function rateText(rate: number, unit: string): string {
  const step = inSteps(rate, RATES);
  return step ? `${threeDigitsText(rate / step[0])} ${step[1]}${unit}/s` : `${threeDigitsText(rate)} ${unit}/s`;
}

/** A share of the whole in percent; what is not nothing or not all is not written so. */
export function shareText(ratio: number): string {
  if (ratio !== 0 && Math.abs(ratio) < 0.0005) return ratio > 0 ? "<0.1 %" : ">-0.1 %";
  const written = `${fixed(Math.abs(ratio) * 100, 1)} %`;
  if (Math.abs(ratio) < LARGEST_PART && written === "100.0 %") return ratio > 0 ? ">99.9 %" : "<-99.9 %";
  return ratio < 0 ? `-${written}` : written;
}

/** The largest share that is less than the whole by more than its rounding as a float. */
const LARGEST_PART = 1 - 1e-12;

/** A rounded number is 0, never -0. */
function unsigned(whole: string): string {
  return whole === "-0" ? "0" : whole;
}

/** A written number with its thousands apart. */
export function grouped(number: string): string {
  const [whole = "", decimals] = number.split(".");
  const apart = whole.replace(/\B(?=(?:\d{3})+$)/g, ",");
  return decimals === undefined ? apart : `${apart}.${decimals}`;
}

const WRITTEN: Partial<Record<Unit, (value: number) => string>> = {
  "ns": timeText,
  "instant": instantText,
  "bytes": bytesText,
  "count": countText,
  "flops": countText,
  "flops/s": (value) => rateText(value, "FLOP"),
  "bytes/s": (value) => rateText(value, "B"),
  "times": (value) => `${threeDigitsText(value)} times`,
  "flops/byte": (value) => `${threeDigitsText(value)} FLOP/B`,
  "ratio": shareText,
  "percent": (value) => shareText(value / 100),
  "gb/s": (value) => `${threeDigitsText(value)} GB/s`,
};

/** The text of a value of any column; a dash if unknown. */
export function text(value: Cell, unit: Unit): string {
  if (value === null) return UNKNOWN;
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "number") return WRITTEN[unit]?.(value) ?? String(value);
  return value;
}

/** What one of each unit is called; of the others the number as it is says nothing more. */
const EXACT: Partial<Record<Unit, string>> = {
  "ns": "ns",
  "instant": "ns",
  "bytes": "bytes",
  "count": "",
  "flops": "",
  "flops/s": "FLOP/s",
  "bytes/s": "B/s",
  "flops/byte": "FLOP/B",
  "ratio": "",
  "percent": "%",
  "gb/s": "GB/s",
  "times": "times",
};

/** A number with all its digits, where its text leaves some out; else nothing. */
export function exactText(value: Cell, unit: Unit): string | undefined {
  const name = EXACT[unit];
  if (typeof value !== "number" || !Number.isFinite(value) || value === 0 || name === undefined) return undefined;
  const digits = String(value);
  const exact = `${digits.includes("e") ? digits : grouped(digits)} ${name}`.trim();
  return exact === text(value, unit) ? undefined : exact;
}

const TIME_SIZES = { ns: 1, us: 1e3, "µs": 1e3, "μs": 1e3, ms: 1e6, s: 1e9, min: 60e9 };
const BYTE_SIZES = {
  b: 1, kib: 2 ** 10, mib: 2 ** 20, gib: 2 ** 30, tib: 2 ** 40,
  k: 2 ** 10, m: 2 ** 20, g: 2 ** 30, t: 2 ** 40, kb: 1e3, mb: 1e6, gb: 1e9, tb: 1e12,
};
const DECIMAL_SIZES = { k: 1e3, m: 1e6, g: 1e9, t: 1e12, p: 1e15 };

/** Suffixes that a number of each unit may have, in lower case, and their factors. */
const SIZES: Partial<Record<Unit, Readonly<Record<string, number>>>> = {
  "ns": TIME_SIZES,
  "instant": TIME_SIZES,
  "bytes": BYTE_SIZES,
  "count": DECIMAL_SIZES,
  "flops": DECIMAL_SIZES,
  "flops/s": { ...DECIMAL_SIZES, "flop/s": 1, ...perSecond("flop/s") },
  "bytes/s": { ...DECIMAL_SIZES, "b/s": 1, ...perSecond("b/s") },
  "flops/byte": { "flop/b": 1 },
  "ratio": { "%": 0.01 },
  "percent": { "%": 1 },
  "gb/s": { "gb/s": 1, "mb/s": 1e-3, "tb/s": 1e3 },
  "times": { "times": 1, "x": 1 },
};

function perSecond(unit: string): Record<string, number> {
  const sizes = Object.entries(DECIMAL_SIZES);
  return Object.fromEntries(sizes.map(([letter, size]) => [letter + unit, size]));
}

/**
 * The number that a text such as "1 ms", "2.5 MiB" or "1,204" means in a column of that unit; null
 * if it means none. A bare number is one of the unit itself: nanoseconds, bytes, 1 for the whole.
 */
export function parseQuantity(words: string, unit: Unit): number | null {
  const found = /^([+-]?(?:\d[\d,_ ]*)?\.?\d*(?:e[+-]?\d+)?)\s*([a-zµμ%][a-z/]*|%)?$/i.exec(words.trim());
  const digits = found?.[1]?.replace(/[,_ ]/g, "") ?? "";
  if (!/\d/.test(digits)) return null;
  const number = Number(digits);
  const name = found?.[2]?.toLowerCase() ?? "";
  const size = name === "" ? 1 : SIZES[unit]?.[name];
  if (!Number.isFinite(number) || size === undefined) return null;
  return size < 1 ? number / Math.round(1 / size) : number * size;
}

/** An example of a quantity, shown in an empty field. */
export function exampleOf(unit: Unit): string {
  return EXAMPLES[unit] ?? "100";
}

const EXAMPLES: Partial<Record<Unit, string>> = {
  "ns": "1 ms",
  "instant": "1.5 s",
  "bytes": "2 MiB",
  "flops": "1 G",
  "flops/s": "1 TFLOP/s",
  "bytes/s": "100 GB/s",
  "ratio": "5 %",
  "percent": "50 %",
  "gb/s": "10 GB/s",
  "times": "1.5 times",
};
