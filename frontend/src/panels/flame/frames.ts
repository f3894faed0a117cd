// The view `flame` as a tree, with facts about its nodes (pure).

import type { Link, Order, Tree } from "../../draw/tree.ts";
import { buildTree, path } from "../../draw/tree.ts";
import type { FullTable } from "../../parts/data/full-table.ts";
import { cell, number, numbers, textAt, texts } from "../../parts/data/full-table.ts";

export type Metric = "host" | "device";

export interface Frames {
  tree: Tree;
  kind: readonly string[];
  metric: Metric;
  table: FullTable;
}

export function framesOf(table: FullTable, order: Order): Frames {
  const parent = (table.columns["parent"] ?? []).map((at) => (typeof at === "number" ? at : null));
  const tree = buildTree(texts(table, "name"), parent, numbers(table, "total_time"), order);
  const kind = texts(table, "kind");
  const asked = table.options["metric"];
  const nodeFacts = asked === "host" || asked === "device" ? asked : null;
  const onDevice = kind.includes("kernel") || kind.includes("copy");
  return { tree, kind, metric: nodeFacts ?? (onDevice ? "device" : "host"), table };
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
    share: tree.whole > 0 ? total / tree.whole : 0,
    shareOfFocus: wide > 0 && path(tree, node).includes(focus) ? total / wide : null,
    file: textAt(table, "file", node),
    line: number(table, "line", node),
  };
}

/** A frame without its folders, as its box shows it: `train.py(42): step`. */
export function label(name: string, kind: string): string {
  if (kind === "module") return name.replace(/^nn\.Module: /, "");
  if (kind !== "frame") return name;
  const file = /^(.*)\(\d+\): /.exec(name)?.[1] ?? "";
  return name.slice(file.lastIndexOf("/") + 1);
}

/** The chain role of a node: frames with a single child are merged; a module starts a chain. */
export function linkOf(kind: string | undefined): Link {
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
