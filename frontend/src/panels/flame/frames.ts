// The view `flame` as a tree, with facts about its nodes (pure).

import type { Link, Order, Tree } from "../../draw/tree.ts";
import { buildTree, path } from "../../draw/tree.ts";
import type { FullTable } from "../../parts/data/full-table.ts";
import { cell, number, numbers, textAt, texts } from "../../parts/data/full-table.ts";

export type Metric = "host" | "device";

/**
 * What the tree tells: what each node called, or bottom up what the self time or the time of its
 * root was called from.
 */
export type Direction = "callees" | "callers of self time" | "callers";

export interface Frames {
  tree: Tree;
  direction: Direction;
  kind: readonly string[];
  metric: Metric;
  table: FullTable;
}

export function framesOf(
  table: FullTable,
  order: Order,
  direction: Direction = "callees",
  metric: Metric = metricOf(table),
): Frames {
  const tree = buildTree(texts(table, "name"), parents(table), numbers(table, "total_time"), order);
  return { tree, direction, kind: texts(table, "kind"), metric, table };
}

/** The slices of one thread in order of time; those of the device are side by side. */
export function framesInTime(table: FullTable, thread: string): Frames {
  const part = ofThread(table, thread);
  const metric = metricOf(table);
  const [name, start] = [texts(part, "name"), numbers(part, "start")];
  const key = name.map((text, node) => `${start[node]} ${text}`);
  const begin = metric === "host" ? start : null;
  const tree = buildTree(name, parents(part), numbers(part, "total_time"), "given", { begin, key });
  return { tree, direction: "callees", kind: texts(part, "kind"), metric, table: part };
}

/** The threads of a table in order of time, with the time of each; the main one first. */
export function threadsOf(table: FullTable): Map<string, number> {
  const [thread, parent, total] = [texts(table, "thread"), parents(table), numbers(table, "total_time")];
  const found = new Map<string, number>();
  thread.forEach((name, row) => {
    if (parent[row] === null) found.set(name, (found.get(name) ?? 0) + (total[row] ?? 0));
  });
  return found;
}

/** The rows of one thread; they follow each other, as each root is before what is within it. */
function ofThread(table: FullTable, thread: string): FullTable {
  const [of, parent] = [texts(table, "thread"), parents(table)];
  const place = new Map<number, number>();
  const root: string[] = [];
  parent.forEach((above, row) => {
    root.push(above === null ? (of[row] ?? "") : (root[above] ?? ""));
    if (root[row] === thread) place.set(row, place.size);
  });
  const columns = Object.entries(table.columns).map(([name, held]) => {
    const kept = [...place.keys()].map((row) => held[row] ?? null);
    return [name, name === "parent" ? kept.map((above) => (typeof above === "number" ? (place.get(above) ?? null) : null)) : kept] as const;
  });
  return { ...table, columns: Object.fromEntries(columns), rows: place.size };
}

function parents(table: FullTable): (number | null)[] {
  return (table.columns["parent"] ?? []).map((at) => (typeof at === "number" ? at : null));
}

/** Which time a table has; where the recording decided, its kernels tell. */
export function metricOf(table: FullTable): Metric {
  const asked = table.options["metric"];
  if (asked === "host" || asked === "device") return asked;
  const kind = texts(table, "kind");
  return kind.includes("kernel") || kind.includes("copy") ? "device" : "host";
}

/** Colours of the style sheet by kind. */
export const COLOURS: Readonly<Record<string, string>> = {
  frame: "python",
  module: "mark",
  annotation: "memory",
  operator: "operator",
  call: "runtime",
  kernel: "kernel",
  copy: "copy",
  other: "other",
};

export interface NodeFacts {
  name: string;
  kind: string;
  total: number;
  self: number;
  count: number;
  /** Share of the time of all roots. */
  share: number;
  /** Share of the focused node's time. */
  shareOfFocus: number | null;
  file: string | null;
  line: number | null;
  /** The name at the root. */
  root: string;
  isRoot: boolean;
}

export function nodeFacts(frames: Frames, node: number, focus: number): NodeFacts {
  const { table, tree } = frames;
  const total = tree.total[node] ?? 0;
  const wide = focus < 0 ? 0 : (tree.total[focus] ?? 0);
  return {
    name: tree.name[node] ?? "",
    kind: frames.kind[node] ?? "other",
    total,
    self: number(table, "self_time", node) ?? 0,
    count: number(table, "count", node) ?? 0,
    share: number(table, "share", node) ?? (tree.whole > 0 ? total / tree.whole : 0),
    shareOfFocus: wide > 0 && path(tree, node).includes(focus) ? total / wide : null,
    file: textAt(table, "file", node),
    line: number(table, "line", node),
    root: tree.name[path(tree, node)[0] ?? -1] ?? "",
    isRoot: (tree.parent[node] ?? -1) < 0,
  };
}

/** The number of rows of a tree. */
export function deepest(tree: Tree): number {
  const depth: number[] = [];
  tree.parent.forEach((above, node) => (depth[node] = (depth[above] ?? 0) + 1));
  return depth.reduce((most, one) => Math.max(most, one), 0);
}

/** A frame without its folders, as its box shows it: `train.py(42): step`. */
export function label(name: string, kind: string): string {
  if (kind === "module") return name.replace(/^nn\.Module: /, "");
  if (kind !== "frame") return name;
  const file = /^(.*)\(\d+\): /.exec(name)?.[1] ?? "";
  return name.slice(file.lastIndexOf("/") + 1);
}

/**
 * The chain role of a node: frames with a single child are merged; a module starts a chain. Of
 * callers the nearest names the chain.
 */
export function linkOf(kind: string | undefined, direction: Direction = "callees"): Link {
  if (direction !== "callees") return kind === "frame" ? "begins or continues" : "stands alone";
  return kind === "module" ? "begins" : kind === "frame" ? "continues" : "stands alone";
}

const COARSE = 0.001;
const FINEST = 1e-7;

/**
 * The least share that is asked for, so that what is focused has as much detail as the whole had.
 * In steps of 10: a focus nearby needs no new answer.
 */
export function minimumShare(shareOfFocus: number): number {
  if (!(shareOfFocus > 0)) return COARSE;
  const step = Math.floor(Math.log10(Math.min(shareOfFocus, 1)) + 1e-9);
  return Math.max(Number((COARSE * 10 ** step).toPrecision(1)), FINEST);
}

/**
 * Folded stacks as flame graph programs read them: names from the root on, then a blank and the
 * stack's own time. As `selftime view flame --format folded` writes them.
 */
export function foldedStacks(frames: Frames): string {
  const { tree, table } = frames;
  const stacks: string[] = [];
  const lines: string[] = [];
  tree.name.forEach((name, node) => {
    const label = name.replace(/[ ;\t\r\n]/g, "_") || "_";
    const above = stacks[tree.parent[node] ?? -1];
    stacks.push(above === undefined ? label : `${above};${label}`);
    const own = cell(table, "self_time", node);
    if (own) lines.push(`${stacks[node] ?? ""} ${own}\n`);
  });
  return lines.join("");
}
