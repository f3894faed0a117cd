// The view `op_profile` as a tree, and its columns (pure).

import type { Cell, Unit } from "../../../data/api.ts";
import type { Tree } from "../../../draw/tree.ts";
import { buildTree } from "../../../draw/tree.ts";
import { shortName } from "../../../draw/names.ts";
import type { FullTable } from "../../../parts/data/full-table.ts";
import { number, numbers, textAt, texts } from "../../../parts/data/full-table.ts";
import { timeText, text, UNKNOWN } from "../../../units.ts";
import type { Head } from "../columns.ts";
import { headsThatSay, PASSES } from "../columns.ts";

export interface Profile {
  tree: Tree;
  table: FullTable;
  /** Whether the outermost rows are modules; else they are kinds of work. */
  byModule: boolean;
  /** Whether the device's time is divided; else the host's. */
  onDevice: boolean;
}

/** The input shapes of operators where none were recorded. */
const NO_SHAPES = "[]";

export function profileOf(table: FullTable): Profile {
  const kinds = texts(table, "kind");
  const name = texts(table, "name").map((full, row) => labelOf(full, kinds[row] ?? ""));
  const parent = (table.columns["parent"] ?? []).map((id) => (typeof id === "number" ? id : null));
  return {
    tree: buildTree(name, parent, numbers(table, "total_time")),
    table,
    byModule: kinds.some((kind) => kind === "module"),
    onDevice: kinds.some((kind) => kind === "kernel"),
  };
}

function labelOf(name: string, kind: string): string {
  if (kind === "kernel") return shortName(name);
  return kind === "shape" && name === NO_SHAPES ? "input shapes not recorded" : name;
}

/** Five classes of the achieved share of the peak, the least first, with the colour of each. */
export const ACHIEVED: readonly { below: number; colour: string; words: string }[] = [
  { below: 0.2, colour: "achieved-least", words: "below 20 %" },
  { below: 0.4, colour: "achieved-low", words: "20 to 40 %" },
  { below: 0.6, colour: "achieved-half", words: "40 to 60 %" },
  { below: 0.8, colour: "achieved-high", words: "60 to 80 %" },
  { below: Number.POSITIVE_INFINITY, colour: "achieved-most", words: "80 % and more" },
];
export const UNKNOWN_COLOUR = "idle";

/** The colour of a row by its achieved share. */
export function achievedColour(share: number | null): string {
  if (share === null) return UNKNOWN_COLOUR;
  return ACHIEVED.find(({ below }) => share < below)?.colour ?? UNKNOWN_COLOUR;
}

/** The part of a row's time of which the achieved share is known, from 0 to 1. */
export function knownShare({ table }: Profile, node: number): number {
  const time = number(table, "total_time", node) ?? 0;
  return time > 0 ? (number(table, "known_time", node) ?? 0) / time : 0;
}

const HEADS: readonly Head[] = [
  { name: "total_time", title: "Time", doc: "Time of the row and all within it", unit: "ns" },
  { name: "achieved_share", title: "Achieved", doc: "What the work takes at the peak, as a share of the time of which that is known", unit: "ratio" },
  { name: "wasted_time", title: "Wasted", doc: "Time beyond what the work takes at the peak", unit: "ns" },
  { name: "known_time", title: "Known", doc: "Time of which the achieved share is known", unit: "ns" },
  { name: "own_time", title: "own", doc: "Time without modules within it", unit: "ns" },
  { name: "flops_rate", title: "FLOP/s", doc: "Modelled operations by the row's time: at least", unit: "flops/s" },
  { name: "flops_share", title: "of peak", doc: "FLOP/s as a share of the device's peak", unit: "ratio" },
  { name: "bytes_rate", title: "B/s", doc: "Bytes that must be moved, by the row's time: at least", unit: "bytes/s" },
  { name: "bytes_share", title: "of peak", doc: "Bytes/s as a share of the memory's bandwidth", unit: "ratio" },
  { name: "forward_time", title: "Forward", doc: "Of the time: not in the backward pass", unit: "ns" },
  { name: "backward_time", title: "Backward", doc: "Of the time: in the backward pass", unit: "ns" },
  { name: "recompute_time", title: "Recompute", doc: "Of the time: recomputed in the backward pass", unit: "ns" },
  { name: "count", title: "Count", doc: "Kernels, copies and fills; of host time, slices", unit: "count" },
];

/** The columns that say something; the known time always does, and time without modules where there are modules. */
export function heads({ table, byModule }: Profile): Head[] {
  const all = HEADS.filter(({ name }) => byModule || name !== "own_time");
  return headsThatSay(table, all, "time", ["known_time", "own_time"]);
}

const PREFIXES: readonly (readonly [size: number, prefix: string])[] = [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];

/** A rate in three digits with a prefix; its unit stands in the head of the column. */
export function rateWords(rate: number): string {
  const [size, prefix] = PREFIXES.find(([least]) => rate >= least) ?? [1, ""];
  const digits = Number((rate / size).toPrecision(3));
  return `${digits < 1000 ? String(digits) : Math.round(rate / size)} ${prefix}`.trim();
}

/** A figure of a row in few digits. */
export function figureWords(value: Cell, unit: Unit): string {
  if (typeof value !== "number") return UNKNOWN;
  if (unit === "ns") return value === 0 ? "0" : timeText(value);
  return unit === "flops/s" || unit === "bytes/s" ? rateWords(value) : text(value, unit);
}

/** The time of a row in each pass. */
export function passes({ table }: Profile, node: number): number[] {
  return PASSES.map((pass) => number(table, `${pass}_time`, node) ?? 0);
}

/** The table that lists what a row is, and its address there; null for rows that are in none. */
export function tableOf({ table }: Profile, node: number): { panel: string; params: Record<string, string>; words: string } | null {
  const [name, kind] = [textAt(table, "name", node) ?? "", textAt(table, "kind", node)];
  const where = (column: string) => JSON.stringify([{ column, op: "is", value: name }]);
  if (kind === "operator") return { panel: "operators", params: { where: where("name") }, words: "its row among operators" };
  if (kind === "kernel") return { panel: "kernels", params: { where: where("name") }, words: "its row among kernels" };
  if (kind === "module") return { panel: "flame", params: { by: "module", find: name }, words: "in the flame graph" };
  return null;
}
