// Two trees of allocated memory as one: what each node holds before and after (pure).

import type { Tree } from "../../draw/tree.ts";
import { buildTree } from "../../draw/tree.ts";
import { number, textAt } from "../../parts/data/full-table.ts";
import type { Allocations } from "./allocations.ts";

export interface FlameDifference {
  /** A node is as wide as its blocks are before or after, whichever are more, so that none is missing. */
  tree: Tree;
  kind: readonly string[];
  before: readonly number[];
  after: readonly number[];
  file: readonly (string | null)[];
  line: readonly (number | null)[];
  /** Whose code a frame is. */
  origin: readonly (string | null)[];
  /** The largest change of a node. */
  most: number;
  /** Bytes of the roots below which nothing changed; they are left out. */
  unchanged: number;
}

type Side = "before" | "after";

interface Node {
  name: string;
  kind: string;
  file: string | null;
  line: number | null;
  origin: string | null;
  bytes: Record<Side, number>;
  own: Record<Side, number>;
  children: Map<string, Node>;
}

export function flameDifference(before: Allocations, after: Allocations): FlameDifference {
  const roots = new Map<string, Node>();
  add(before, "before", before.tree.roots, roots);
  add(after, "after", after.tree.roots, roots);
  const nodes: Node[] = [];
  const parent: (number | null)[] = [];
  const weights: number[] = [];
  const place = (node: Node, above: number | null): number => {
    const at = nodes.push(node) - 1;
    parent.push(above);
    const own = Math.max(node.own.before, node.own.after, 0);
    weights[at] = [...node.children.values()].reduce((sum, child) => sum + place(child, at), own);
    return weights[at] ?? 0;
  };
  const changed = [...roots.values()].filter(isChanged);
  for (const root of changed) place(root, null);
  const [bytesBefore, bytesAfter] = [nodes.map((node) => node.bytes.before), nodes.map((node) => node.bytes.after)];
  return {
    tree: buildTree(nodes.map((node) => node.name), parent, weights),
    kind: nodes.map((node) => node.kind),
    before: bytesBefore,
    after: bytesAfter,
    file: nodes.map((node) => node.file),
    line: nodes.map((node) => node.line),
    origin: nodes.map((node) => node.origin),
    unchanged: [...roots.values()].reduce((sum, root) => (isChanged(root) ? sum : sum + root.bytes.after), 0),
    most: nodes.reduce((most, { bytes }) => Math.max(most, Math.abs(bytes.after - bytes.before)), 0),
  };
}

function isChanged(node: Node): boolean {
  return node.bytes.before !== node.bytes.after || [...node.children.values()].some(isChanged);
}

/** Adds nodes of one side below a node of both; equal ones of two sides are one. */
function add({ tree, kind, table }: Allocations, side: Side, rows: readonly number[], into: Map<string, Node>): void {
  for (const row of rows) {
    const [name, sort] = [tree.name[row] ?? "", kind[row] ?? ""];
    const [file, line] = [textAt(table, "file", row), number(table, "line", row)];
    const key = JSON.stringify([sort, name, file, line]);
    const node = into.get(key) ?? { name, kind: sort, file, line, origin: textAt(table, "origin", row), bytes: nothing(), own: nothing(), children: new Map() };
    into.set(key, node);
    const below = tree.children[row] ?? [];
    const bytes = tree.total[row] ?? 0;
    node.bytes[side] += bytes;
    node.own[side] += bytes - below.reduce((sum, child) => sum + (tree.total[child] ?? 0), 0);
    add({ tree, kind, table }, side, below, node.children);
  }
}

function nothing(): Record<Side, number> {
  return { before: 0, after: 0 };
}

export function changeOf(found: FlameDifference, node: number): number {
  return (found.after[node] ?? 0) - (found.before[node] ?? 0);
}

/** How strongly a node is coloured, from 0 to 1: by the root, so that small changes are seen. */
export function strengthOf(found: FlameDifference, node: number): number {
  return found.most > 0 ? Math.sqrt(Math.abs(changeOf(found, node)) / found.most) : 0;
}
