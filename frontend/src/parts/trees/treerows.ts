// The visible rows of a tree: open, matched and sorted (pure).

import type { Cell } from "../../data/api.ts";
import type { Tree } from "../../draw/tree.ts";
import { path } from "../../draw/tree.ts";
import type { FullTable } from "../data/full-table.ts";
import { cell } from "../data/full-table.ts";

export interface TreeRowsQuery {
  /** Only this node and what is within it; -1 for all. */
  root: number;
  /** Nodes that the reader opened or closed. */
  toggled: ReadonlySet<number>;
  /** The chosen node: it is shown whatever is closed. */
  at: number;
  hits: ReadonlySet<number> | null;
}

export interface Row {
  node: number;
  depth: number;
  /** Whether the node is open; null for a leaf. */
  open: boolean | null;
}

/** The rows that are shown, in order; `atFirst` tells which nodes are open until a hand closes them. */
export function visibleRows(
  tree: Tree,
  asked: TreeRowsQuery,
  atFirst: (node: number) => boolean,
  compare: (a: number, b: number) => number,
): Row[] {
  const wanted = asked.hits === null ? null : withAbove(tree, asked.hits);
  const around = new Set(asked.at < 0 ? [] : path(tree, asked.at).slice(0, -1));
  const rows: Row[] = [];
  const visit = (nodes: readonly number[], depth: number) => {
    for (const node of nodes.toSorted(compare)) {
      if (wanted !== null && !wanted.has(node)) continue;
      const within = tree.children[node] ?? [];
      const found = wanted !== null && within.some((child) => wanted.has(child));
      const isOpen = found || around.has(node) || atFirst(node) !== asked.toggled.has(node);
      const open = within.length === 0 ? null : isOpen;
      rows.push({ node, depth, open });
      if (open) visit(within, depth + 1);
    }
  };
  visit(asked.root < 0 ? tree.roots : [asked.root], 0);
  return rows;
}

/** Nodes with at least this share of the shown time are open at first. */
const OPEN = 0.1;

/** The rows of a tree of times, in the order of a column; what takes little is closed at first. */
export function rowsByTime(of: { tree: Tree; table: FullTable }, asked: TreeRowsQuery & { sort: string }): Row[] {
  const { tree, table } = of;
  const whole = asked.root < 0 ? tree.whole : (tree.total[asked.root] ?? 0);
  const isOpen = (node: number) => (tree.total[node] ?? 0) >= OPEN * whole;
  return visibleRows(tree, asked, isOpen, compareRows(table, asked.sort));
}

function withAbove(tree: Tree, hits: ReadonlySet<number>): Set<number> {
  const wanted = new Set<number>();
  for (const hit of hits) {
    for (let at = hit; at >= 0 && !wanted.has(at); at = tree.parent[at] ?? -1) wanted.add(at);
  }
  return wanted;
}

/** Rows by a column; what is unknown stands last, whichever way. */
export function compareRows(table: FullTable, sort: string): (a: number, b: number) => number {
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

/** The node that a word of the address names; -1 for none, or one that the tree has not. */
export function nodeInAddress(word: string | undefined, tree: Tree): number {
  const node = Number(word || -1);
  return Number.isInteger(node) && node >= 0 && node < tree.name.length ? node : -1;
}

/** Nodes from the address: numbers joined by dots. */
export function parseNumbers(word: string | undefined): Set<number> {
  if (!word) return new Set();
  return new Set(word.split(".").map(Number).filter((node) => Number.isInteger(node)));
}

/** The address with one node toggled. */
export function toggleNumber(nodes: ReadonlySet<number>, node: number): string | undefined {
  const changed = new Set(nodes);
  if (!changed.delete(node)) changed.add(node);
  return changed.size === 0 ? undefined : [...changed].toSorted((a, b) => a - b).join(".");
}
