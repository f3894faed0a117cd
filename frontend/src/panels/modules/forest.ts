// The view `modules` as a tree, and which of its rows are shown (pure).

import type { Cell } from "../../api.ts";
import type { Tree } from "../../draw/tree.ts";
import { grow, path } from "../../draw/tree.ts";
import type { Whole } from "../../parts/whole.ts";
import { cell, number, numbers, texts } from "../../parts/whole.ts";

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

export interface Asked {
  /** Only this node and what is within it; -1 for all. */
  root: number;
  /** Nodes that were opened or closed by hand. */
  toggled: ReadonlySet<number>;
  /** The chosen node: it is shown whatever is closed. */
  at: number;
  hits: ReadonlySet<number> | null;
  sort: string;
}

export interface Row {
  node: number;
  depth: number;
  /** Null if there is nothing within. */
  open: boolean | null;
}

/** The rows that are shown, in order. */
export function shown(forest: Forest, asked: Asked): Row[] {
  const { tree } = forest;
  const wanted = asked.hits === null ? null : withAbove(tree, asked.hits);
  const around = new Set(asked.at < 0 ? [] : path(tree, asked.at).slice(0, -1));
  const whole = asked.root < 0 ? tree.whole : (tree.total[asked.root] ?? 0);
  const compare = comparing(forest, asked.sort);
  const rows: Row[] = [];
  const visit = (nodes: readonly number[], depth: number) => {
    for (const node of nodes.toSorted(compare)) {
      if (wanted !== null && !wanted.has(node)) continue;
      const within = tree.children[node] ?? [];
      const atFirst = (tree.total[node] ?? 0) >= OPEN * whole;
      const found = wanted !== null && within.some((child) => wanted.has(child));
      const isOpen = found || around.has(node) || atFirst !== asked.toggled.has(node);
      const open = within.length === 0 ? null : isOpen;
      rows.push({ node, depth, open });
      if (open) visit(within, depth + 1);
    }
  };
  visit(asked.root < 0 ? tree.roots : [asked.root], 0);
  return rows;
}

function withAbove(tree: Tree, hits: ReadonlySet<number>): Set<number> {
  const wanted = new Set<number>();
  for (const hit of hits) {
    for (let at = hit; at >= 0 && !wanted.has(at); at = tree.parent[at] ?? -1) wanted.add(at);
  }
  return wanted;
}

/** Siblings by a column; what is unknown stands last, whichever way. */
function comparing({ table }: Forest, sort: string): (a: number, b: number) => number {
  const column = sort.replace(/^-/, "");
  const sign = sort.startsWith("-") ? -1 : 1;
  return (a, b) => {
    const [one, other] = [cell(table, column, a), cell(table, column, b)];
    if (one === null || other === null) return Number(one === null) - Number(other === null) || a - b;
    return sign * compared(one, other) || a - b;
  };
}

function compared(one: Cell, other: Cell): number {
  if (typeof one === "number" && typeof other === "number") return one - other;
  const [a, b] = [String(one), String(other)];
  return a < b ? -1 : Number(a > b);
}

/** The total of a module in three: what it took forward, backward and recomputed. */
export function passes(forest: Forest, node: number): [forward: number, backward: number, recompute: number] {
  const unit = forest.metric === "device" ? "device_time" : "cpu_time";
  const of = (pass: string) => number(forest.table, `${pass}_${unit}`, node) ?? 0;
  return [of("forward"), of("backward"), of("recompute")];
}

/** Names from the address: numbers joined by dots. */
export function numbersIn(word: string | undefined): Set<number> {
  if (!word) return new Set();
  return new Set(word.split(".").map(Number).filter((node) => Number.isInteger(node)));
}

/** The address with one node toggled. */
export function toggled(nodes: ReadonlySet<number>, node: number): string | undefined {
  const changed = new Set(nodes);
  if (!changed.delete(node)) changed.add(node);
  return changed.size === 0 ? undefined : [...changed].toSorted((a, b) => a - b).join(".");
}

/** Whether a module's name is the beginning of no other's, so that a prefix tells it. */
export function isAlone(forest: Forest, node: number): boolean {
  const name = forest.tree.name[node] ?? "";
  return !forest.tree.name.some((other) => other !== name && other.startsWith(name));
}
