// The view `modules` as a tree (pure).

import type { Tree } from "../../draw/tree.ts";
import { buildTree } from "../../draw/tree.ts";
import type { FullTable } from "../../parts/data/full-table.ts";
import { number, numbers, texts } from "../../parts/data/full-table.ts";

export type Metric = "host" | "device";

export interface Forest {
  tree: Tree;
  table: FullTable;
  metric: Metric;
  /** The column from which shares are computed. */
  by: string;
  /** The row of time outside of modules; -1 if there is none. */
  outside: number;
}

export const OUTSIDE = "outside modules";

export function forestOf(table: FullTable, asked: string | undefined): Forest {
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
  return { tree: buildTree(name, parent, numbers(table, by)), table, metric, by, outside };
}

function numbersOrNull(table: FullTable, name: string): (number | null)[] {
  return (table.columns[name] ?? []).map((known) => (typeof known === "number" ? known : null));
}

/** The total time of a module by pass: forward, backward and recomputation. */
export function passes(forest: Forest, node: number): [forward: number, backward: number, recompute: number] {
  const unit = forest.metric === "device" ? "device_time" : "cpu_time";
  const of = (pass: string) => number(forest.table, `${pass}_${unit}`, node) ?? 0;
  return [of("forward"), of("backward"), of("recompute")];
}

/** Whether a module's name is not a prefix of another's. */
export function isUniqueName(forest: Forest, node: number): boolean {
  const name = forest.tree.name[node] ?? "";
  return !forest.tree.name.some((other) => other !== name && other.startsWith(name));
}
