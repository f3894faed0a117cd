// The view `memory_holders` as bands that stand on each other; their top edge is the curve (pure).

import type { FullTable } from "../../parts/data/full-table.ts";
import { number, textAt } from "../../parts/data/full-table.ts";
import { pointAt } from "./curves.ts";
import { placeText } from "../../parts/text/place.ts";

/** What a band of the stack is of: words of the option `by`. */
export const GROUPINGS = ["category", "module", "operator", "line"] as const;
export type Grouping = (typeof GROUPINGS)[number];

export interface Band {
  label: string;
  /** The colour's name in the style sheet. */
  colour: string;
  /** The source line, if bands are lines. */
  file: string | null;
  line: number | null;
  times: number[];
  /** Bytes from each time on. */
  bytes: number[];
}

/** Colours of categories, as other memory viewers have them; the others take their turn. */
const CATEGORIES: Readonly<Record<string, string>> = {
  parameter: "kernel",
  "optimizer state": "copy",
  activation: "loading",
  gradient: "runtime",
  temporary: "collective",
  input: "python",
};
const COLOURS = ["runtime", "copy", "kernel", "collective", "loading", "operator", "python", "mark"] as const;
const UNKNOWN = "other";
const OTHERS = "line-strong";
const EARLIER = "idle";

const NOWHERE: Readonly<Record<Grouping, string>> = {
  category: "unknown",
  module: "outside modules",
  operator: "outside operators",
  line: "unknown line",
};

/** The bands of each device, by its key; equal labels have one colour everywhere. */
export function bandsOf(table: FullTable, by: Grouping): ReadonlyMap<string, Band[]> {
  const colours = new Map<string, string>();
  const found = new Map<string, Map<number, Band>>();
  for (let row = 0; row < table.rows; row++) {
    const device = `${textAt(table, "device_type", row) ?? "unknown"}:${number(table, "device", row) ?? ""}`;
    const bands = found.get(device) ?? new Map<number, Band>();
    found.set(device, bands);
    const group = number(table, "group", row) ?? 0;
    const band = bands.get(group) ?? begun(table, row, by, colours);
    bands.set(group, band);
    band.times.push(number(table, "time", row) ?? 0);
    band.bytes.push(number(table, "bytes", row) ?? 0);
  }
  return new Map([...found].map(([device, bands]) => [device, ordered([...bands.values()])]));
}

function begun(table: FullTable, row: number, by: Grouping, colours: Map<string, string>): Band {
  const [holder, file, line] = [textAt(table, "holder", row), textAt(table, "file", row), number(table, "line", row)];
  const band = { file, line, times: [], bytes: [] };
  if (holder !== "group") return { ...band, label: holder ?? "unknown", colour: holder === "others" ? OTHERS : EARLIER };
  const label = labelOf(table, row, by);
  if (label === NOWHERE[by]) return { ...band, label, colour: UNKNOWN };
  const colour = by === "category" ? CATEGORIES[label] : colours.get(label) ?? COLOURS[colours.size % COLOURS.length];
  if (by !== "category" && colour !== undefined) colours.set(label, colour);
  return { ...band, label, colour: colour ?? UNKNOWN };
}

function labelOf(table: FullTable, row: number, by: Grouping): string {
  if (by !== "line") return textAt(table, by, row)?.replace(/^nn\.Module: /, "") ?? NOWHERE[by];
  const [file, line] = [textAt(table, "file", row), number(table, "line", row)];
  return file === null ? NOWHERE.line : placeText(file.slice(file.lastIndexOf("/") + 1), line ?? "?");
}

/** Whether it is of what no recorded allocation explains. */
export function isEarlier(band: Band): boolean {
  return band.colour === EARLIER;
}

/** From the bottom: what was there before, then the groups with the highest peak first. */
function ordered(bands: Band[]): Band[] {
  return [...bands.filter(isEarlier), ...bands.filter((band) => !isEarlier(band))];
}

/** The bands by a clock that is some ns ahead of their own. */
export function shiftedBands(bands: readonly Band[], by: number): Band[] {
  return bands.map((band) => ({ ...band, times: band.times.map((at) => at + by) }));
}

/** Bytes of a band at an instant. */
export function bytesAt(band: Band, time: number): number {
  return band.bytes[pointAt(band.times, time)] ?? 0;
}

export interface Edges {
  times: number[];
  /** The upper edge of each band from each time on, the lowest band first. */
  upper: number[][];
}

export function edgesOf(bands: readonly Band[]): Edges {
  const times = [...new Set(bands.flatMap((band) => band.times))].sort((a, b) => a - b);
  let below = times.map(() => 0);
  const upper = bands.map((band) => {
    let at = -1;
    below = times.map((time, index) => {
      while ((band.times[at + 1] ?? Infinity) <= time) at += 1;
      return (below[index] ?? 0) + (band.bytes[at] ?? 0);
    });
    return below;
  });
  return { times, upper };
}

/** The band that an amount at an instant lies in; null above all. */
export function bandAt(bands: readonly Band[], time: number, size: number): Band | null {
  let upper = 0;
  for (const band of bands) {
    upper += bytesAt(band, time);
    if (size < upper) return band;
  }
  return null;
}

/** Whether most of the memory at the peak is of a band that names nothing. */
export function isVague(bands: readonly Band[], peak: number): boolean {
  const sizes = bands.map((band) => Math.max(bytesAt(band, peak), 0));
  const whole = sizes.reduce((sum, size) => sum + size, 0);
  const named = sizes.filter((_, at) => ![UNKNOWN, EARLIER].includes(bands[at]?.colour ?? UNKNOWN));
  return 2 * named.reduce((sum, size) => sum + size, 0) < whole;
}
