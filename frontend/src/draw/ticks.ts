// Positions and labels of the ticks of a time ruler.

import type { Span } from "./span.ts";

export interface Ticks {
  /** A base time that is written once, if labels are offsets from it; else empty. */
  base: string;
  marks: { time: number; text: string }[];
  step: number;
}

const UNITS: readonly [number, string][] = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];
/** Labels with more digits are written as offsets from a base time. */
const DIGITS = 1e4;

/** The smallest step (1, 2 or 5 times a power of ten) with `room` pixels between ticks. */
export function stepFor(span: Span, pixels: number, room: number): number {
  const least = ((span.to - span.from) / Math.max(pixels, 1)) * room;
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1)));
  return [1, 2, 5].map((times) => times * power).find((step) => step >= least) ?? 10 * power;
}

export function ticks(span: Span, pixels: number, room = 96): Ticks {
  const step = stepFor(span, pixels, room);
  const first = Math.ceil(span.from / step);
  const count = Math.max(0, Math.floor(span.to / step) - first + 1);
  const largest = Math.max(Math.abs(span.from), Math.abs(span.to));
  const base = largest / step > DIGITS ? baseOf(span, step) : 0;
  const marks = Array.from({ length: count }, (_, at) => {
    const time = (first + at) * step;
    const text = base === 0 ? timeText(time, step) : `+${timeText(time - base, step)}`;
    return { time, text };
  });
  return { base: base === 0 ? "" : timeText(base, stepOfBase(step)), marks, step };
}

function stepOfBase(step: number): number {
  return 1000 ** Math.ceil(Math.log10(step * 100) / 3);
}

function baseOf(span: Span, step: number): number {
  const round = stepOfBase(step);
  return Math.floor(span.from / round) * round;
}

/** A time in the largest unit that it fills, with as many decimals as the step needs. */
export function timeText(time: number, step: number): string {
  if (time === 0) return "0";
  const [size, unit] = UNITS.find(([size]) => Math.abs(time) >= size) ?? [1, "ns"];
  const decimals = Math.max(0, Math.ceil(Math.log10(size / step) - 1e-9));
  return `${(time / size).toFixed(decimals)} ${unit}`;
}
