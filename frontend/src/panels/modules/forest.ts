// The view `modules` as a tree, and which of its rows are shown (pure).

import type { Tree } from "../../draw/tree.ts";
import { grow } from "../../draw/tree.ts";
import type { Row, Unfolding } from "../../parts/treerows.ts";
import { comparing, unfolded } from "../../parts/treerows.ts";
import type { Whole } from "../../parts/whole.ts";
import { number, numbers, texts } from "../../parts/whole.ts";

export type Metric = "host" | "device";

export interface Forest {
  tree: Tree;
  table: Whole;
  metric: Metric;
  /** The column that the shares are of. */
  by: string;
  /** The row of what ran in no module; -1 if there is none. */
  outside: number;
}

export const OUTSIDE = "outside modules";

export function forestOf(table: Whole, asked: string | undefined): Forest {
  const device = numbers(table, "total_device_time");
  const worked = device.some((time) => time > 0);
  const metric = asked === "host" || asked === "device" ? asked : worked ? "device" : "host";
  const by = metric === "device" ? "total_device_time" : "total_cpu_time";
  const own = texts(table, "name");
  const paths = texts(table, "path");
  const name = own.map((known, row) => known || paths[row] || OUTSIDE);
  const places = new Map(numbersOrNull(table, "id").map((id, row) => [id, row]));
  const parent = numbersOrNull(table, "parent").map((id) => (id === null ? null : (places.get(id) ?? null)));
  const outside = (table.columns["path"] ?? []).findIndex((known) => known === null);
  return { tree: grow(name, parent, numbers(table, by)), table, metric, by, outside };
}

function numbersOrNull(table: Whole, name: string): (number | null)[] {
  return (table.columns[name] ?? []).map((known) => (typeof known === "number" ? known : null));
}

/** Rows of the tree that are wide open at first: each of at least this share of what is shown. */
const OPEN = 0.1;

export interface Asked extends Unfolding {
  sort: string;
}

/** The rows that are shown, in order. */
export function shown(forest: Forest, asked: Asked): Row[] {
  const { tree } = forest;
  const whole = asked.root < 0 ? tree.whole : (tree.total[asked.root] ?? 0);
  const isOpen = (node: number) => (tree.total[node] ?? 0) >= OPEN * whole;
  return unfolded(tree, asked, isOpen, comparing(forest.table, asked.sort));
}

/** The total of a module in three: what it took forward, backward and recomputed. */
export function passes(forest: Forest, node: number): [forward: number, backward: number, recompute: number] {
  const unit = forest.metric === "device" ? "device_time" : "cpu_time";
  const of = (pass: string) => number(forest.table, `${pass}_${unit}`, node) ?? 0;
  return [of("forward"), of("backward"), of("recompute")];
}

/** Whether a module's name is the beginning of no other's, so that a prefix tells it. */
export function isAlone(forest: Forest, node: number): boolean {
  const name = forest.tree.name[node] ?? "";
  return !forest.tree.name.some((other) => other !== name && other.startsWith(name));
}
