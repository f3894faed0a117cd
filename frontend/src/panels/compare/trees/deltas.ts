// The tree of a comparison: times of each node before and after (pure).

import type { Cell, Metric } from "../../../data/api.ts";
import type { Tree } from "../../../draw/tree.ts";
import { buildTree } from "../../../draw/tree.ts";
import type { FullTable } from "../../../parts/data/full-table.ts";
import { number, numbers, textAt, texts } from "../../../parts/data/full-table.ts";

export type Side = "before" | "after";

export interface Deltas {
  /** The table's row of each node; the first node is the whole step. */
  table: FullTable;
  /** The nodes weighted by total time, per side. */
  sides: Readonly<Record<Side, Tree>>;
  /** The nodes weighted by the size of their difference. */
  changes: Tree;
  /** The largest absolute difference of total time. */
  most: number;
  /** The difference shown in full colour: the largest, or a share of the step if all are small. */
  scale: number;
  metric: Metric;
  /** The number of omitted nodes: the smallest of a large tree. */
  left: number;
}

/** The root node. */
export const ALL = 0;

/** Share of the step; smaller differences are not shown in full colour. */
const FULL = 0.05;

const SUMS = ["before", "after", "difference"] as const;

export function deltasOf(tree: FullTable, metric: Metric): Deltas {
  const table = withAll(tree);
  const places = new Map((tree.columns["id"] ?? []).map((id, row) => [id, row + 1]));
  const parent = [null, ...(tree.columns["parent"] ?? []).map((id) => places.get(id) ?? ALL)];
  const name = texts(table, "name");
  const grown = (total: readonly number[]) => buildTree(name, parent, total);
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

/** The depth of the visible nodes, in rows. */
export function depthOf({ table, sides }: Deltas, side: Side): number {
  const { total, whole } = sides[side];
  const depths = numbers(table, "depth");
  return depths.reduce((deepest, depth, node) => ((total[node] ?? 0) >= SEEN * whole ? Math.max(deepest, depth + 2) : deepest), 1);
}

/** Narrowest visible node, as a share of the width. */
const SEEN = 0.003;

/** The table with a first row for the total. */
function withAll(tree: FullTable): FullTable {
  const first: Record<string, Cell> = { name: "a step", kind: "all" };
  for (const sum of SUMS) first[`total_${sum}`] = tree.totals[sum] ?? 0;
  const columns = Object.fromEntries(
    Object.entries(tree.columns).map(([name, cells]) => [name, [first[name] ?? null, ...cells]]),
  );
  return { ...tree, columns, rows: tree.rows + 1 };
}

export type Mark = "new" | "gone" | "slower" | "faster" | "same";

/** Share of the scale below which a difference is not marked. */
const LEAST = 0.002;

/** The verdict on a node's total time. */
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

/** The name of a node's colour in the style sheet. */
export function colourOf(deltas: Deltas, node: number): "slower" | "faster" | "other" {
  if (markOf(deltas, node) === "same") return "other";
  const difference = differenceOf(deltas, node);
  return difference > 0 ? "slower" : difference < 0 ? "faster" : "other";
}

/** The strength of a node's colour, from 0 to 1, on a square-root scale. */
export function strengthOf(deltas: Deltas, node: number): number {
  const { scale } = deltas;
  return scale > 0 ? Math.sqrt(Math.abs(differenceOf(deltas, node)) / scale) : 0;
}
