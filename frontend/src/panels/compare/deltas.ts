// The tree of a comparison: what each node takes before and after, as trees to draw (pure).

import type { Cell, Metric } from "../../api.ts";
import type { Tree } from "../../draw/tree.ts";
import { grow } from "../../draw/tree.ts";
import type { Whole } from "../../parts/whole.ts";
import { number, numbers, textAt, texts } from "../../parts/whole.ts";

export type Side = "before" | "after";

export interface Deltas {
  /** The rows by node; the first stands for all of the step. */
  table: Whole;
  /** The same nodes, each as wide as what it takes with all within it. */
  sides: Readonly<Record<Side, Tree>>;
  /** The same nodes by how much they differ, whichever way. */
  changes: Tree;
  /** The greatest difference of a node with all within it, whichever way. */
  most: number;
  /** The difference that has the full colour: the greatest, or a good part of the step if all are small. */
  scale: number;
  metric: Metric;
  /** Nodes that are not here: the smallest of a large tree. */
  left: number;
}

/** The node that all others are within. */
export const ALL = 0;

/** Of a step: recordings that differ by less than this show no full colours. */
const FULL = 0.05;

const SUMS = ["before", "after", "difference"] as const;

export function deltasOf(tree: Whole, metric: Metric): Deltas {
  const table = withAll(tree);
  const places = new Map((tree.columns["id"] ?? []).map((id, row) => [id, row + 1]));
  const parent = [null, ...(tree.columns["parent"] ?? []).map((id) => places.get(id) ?? ALL)];
  const name = texts(table, "name");
  const grown = (total: readonly number[]) => grow(name, parent, total);
  const changes = numbers(table, "total_difference").map(Math.abs);
  const greatest = changes.reduce((found, value) => Math.max(found, value), 0);
  return {
    table,
    sides: { before: grown(numbers(table, "total_before")), after: grown(numbers(table, "total_after")) },
    changes: grown(changes),
    most: greatest,
    scale: Math.max(FULL * Math.max(tree.totals["before"] ?? 0, tree.totals["after"] ?? 0), greatest),
    metric,
    left: tree.total - tree.rows,
  };
}

/** How many rows deep the nodes are that are wide enough to be seen. */
export function depthOf({ table, sides }: Deltas, side: Side): number {
  const { total, whole } = sides[side];
  const depths = numbers(table, "depth");
  return depths.reduce((deepest, depth, node) => ((total[node] ?? 0) >= SEEN * whole ? Math.max(deepest, depth + 2) : deepest), 1);
}

/** Of the whole width: some pixels. */
const SEEN = 0.003;

/** The table with a row before all others that has what all of them take together. */
function withAll(tree: Whole): Whole {
  const first: Record<string, Cell> = { name: "a step", kind: "all" };
  for (const sum of SUMS) first[`total_${sum}`] = tree.totals[sum] ?? 0;
  const columns = Object.fromEntries(
    Object.entries(tree.columns).map(([name, cells]) => [name, [first[name] ?? null, ...cells]]),
  );
  return { ...tree, columns, rows: tree.rows + 1 };
}

export type Mark = "new" | "gone" | "slower" | "faster" | "same";

/** Less of the scale than this is no change to look at. */
const LEAST = 0.002;

/** What is said of a node with all within it. */
export function markOf(deltas: Deltas, node: number): Mark {
  const told = textAt(deltas.table, "verdict", node);
  if (told === "new" || told === "gone") return told;
  const difference = differenceOf(deltas, node);
  if (Math.abs(difference) <= LEAST * deltas.scale) return "same";
  return difference > 0 ? "slower" : "faster";
}

export function differenceOf({ table }: Deltas, node: number): number {
  return number(table, "total_difference", node) ?? 0;
}

/** The colour of a node in the style sheet. */
export function colourOf(deltas: Deltas, node: number): "slower" | "faster" | "other" {
  if (markOf(deltas, node) === "same") return "other";
  const difference = differenceOf(deltas, node);
  return difference > 0 ? "slower" : difference < 0 ? "faster" : "other";
}

/** How much of the colour it has, from 0 to 1: by the root, so that small differences are seen too. */
export function strengthOf(deltas: Deltas, node: number): number {
  const { scale } = deltas;
  return scale > 0 ? Math.sqrt(Math.abs(differenceOf(deltas, node)) / scale) : 0;
}
