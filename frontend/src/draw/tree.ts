// A tree whose nodes have a weight, and what an icicle draws of it (pure).

/** Nodes in order of reading: each stands after the one around it. `parent` is -1 at a root. */
export interface Tree {
  name: readonly string[];
  parent: readonly number[];
  /** Of a node and all within it. */
  total: readonly number[];
  children: readonly (readonly number[])[];
  roots: readonly number[];
  /** The weight of all roots. */
  whole: number;
}

export type Order = "weight" | "name";

export function grow(
  name: readonly string[],
  parent: readonly (number | null)[],
  total: readonly number[],
  order: Order = "weight",
): Tree {
  const children: number[][] = name.map(() => []);
  const roots: number[] = [];
  const above = parent.map((at) => at ?? -1);
  above.forEach((at, node) => (children[at] ?? roots).push(node));
  const by = comparing(name, total, order);
  roots.sort(by);
  for (const below of children) below.sort(by);
  const whole = roots.reduce((sum, node) => sum + weight(total, node), 0);
  return { name, parent: above, total, children, roots, whole };
}

function weight(total: readonly number[], node: number): number {
  return Math.max(total[node] ?? 0, 0);
}

function comparing(name: readonly string[], total: readonly number[], order: Order) {
  if (order === "weight") return (a: number, b: number) => weight(total, b) - weight(total, a) || a - b;
  return (a: number, b: number) => compared(name[a] ?? "", name[b] ?? "") || a - b;
}

function compared(a: string, b: string): number {
  return a < b ? -1 : Number(a > b);
}

/** The node itself and what is around it, from the root on. */
export function path(tree: Tree, node: number): number[] {
  const found: number[] = [];
  for (let at = node; at >= 0; at = tree.parent[at] ?? -1) found.unshift(at);
  return found;
}

/** The names from the root to the node, by which it is found again in another table of the trace. */
export function named(tree: Tree, node: number): string[] {
  return path(tree, node).map((at) => tree.name[at] ?? "");
}

/** The node at these names from the root on, or the deepest that there is; -1 for none. */
export function found(tree: Tree, names: readonly string[]): number {
  let node = -1;
  for (const name of names) {
    const below = node < 0 ? tree.roots : (tree.children[node] ?? []);
    const next = below.find((at) => tree.name[at] === name);
    if (next === undefined) return node;
    node = next;
  }
  return node;
}

/** One rectangle: a node, or several siblings side by side that are too narrow to tell apart. */
export interface Box {
  /** Of a chain the one that it is called by. */
  node: number;
  /** Outermost and innermost of the chain that it stands for: itself, without one. */
  top: number;
  last: number;
  /** How many siblings it stands for. */
  joined: number;
  row: number;
  left: number;
  width: number;
}

export interface Layout {
  boxes: Box[];
  /** How many rows the deepest box needs. */
  rows: number;
  /** Those around the focused node, drawn over the full width. */
  above: number;
}

/** How a node may be of a chain: it begins one that is called by it, or goes on with one. */
export type Link = "begins" | "continues" | "stands alone";
export type Linked = (node: number) => Link;

const ALONE: Linked = () => "stands alone";
/** A node that has all but so little of the time around it is the only one there. */
const ONLY = 0.999;

/** The chain that begins with a node: each but the last holds nothing but the next. */
function chain(tree: Tree, top: number, linked: Linked): { node: number; top: number; last: number } {
  let last = top;
  while (linked(last) !== "stands alone") {
    const next = heaviest(tree, tree.children[last] ?? []);
    if (next === undefined || linked(next) !== "continues") break;
    if (weight(tree.total, next) < ONLY * weight(tree.total, last)) break;
    last = next;
  }
  return { node: linked(top) === "begins" ? top : last, top, last };
}

/**
 * What is drawn of a tree with the focused node (-1: all roots) over the full width.
 *
 * Nothing is narrower than `least`: siblings below that are joined to one box, within which nothing
 * is drawn. So the work is bounded by the pixels, not by the nodes. Chains are one box each.
 */
export function layout(tree: Tree, focus: number, width: number, least = 1, linked: Linked = ALONE): Layout {
  const boxes = around(tree, focus, width, linked);
  const inner = boxes.at(-1);
  const whole = focus < 0 ? tree.whole : weight(tree.total, focus);
  const scale = whole > 0 ? width / whole : 0;
  const above = Math.max(boxes.length - 1, 0);
  let rows = boxes.length;
  const below = inner === undefined ? tree.roots : (tree.children[inner.last] ?? []);
  const open: { nodes: readonly number[]; row: number; left: number }[] = [
    { nodes: below, row: boxes.length, left: 0 },
  ];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    for (const box of side(tree, next.nodes, next.row, next.left, { scale, least, linked })) {
      boxes.push(box);
      rows = Math.max(rows, box.row + 1);
      const inside = box.joined === 1 && box.width >= least ? (tree.children[box.last] ?? []) : [];
      if (inside.length > 0) open.push({ nodes: inside, row: box.row + 1, left: box.left });
    }
  }
  return { boxes, rows, above };
}

/** The focused node and what is around it, over the full width. */
function around(tree: Tree, focus: number, width: number, linked: Linked): Box[] {
  const boxes: Box[] = [];
  const nodes = focus < 0 ? [] : path(tree, focus);
  for (let at = 0; at < nodes.length; at++) {
    const links = chain(tree, nodes[at] ?? -1, linked);
    boxes.push({ ...links, joined: 1, row: boxes.length, left: 0, width });
    while (at + 1 < nodes.length && nodes[at] !== links.last) at += 1;
  }
  return boxes;
}

interface Drawing {
  /** Pixels for a weight of 1. */
  scale: number;
  least: number;
  linked: Linked;
}

/** Siblings side by side, narrow neighbours joined. */
function side(tree: Tree, nodes: readonly number[], row: number, from: number, drawing: Drawing): Box[] {
  const { scale, least, linked } = drawing;
  const boxes: Box[] = [];
  let left = from;
  let narrow: Box | null = null;
  for (const node of nodes) {
    const width = weight(tree.total, node) * scale;
    if (width >= least) {
      boxes.push({ ...chain(tree, node, linked), joined: 1, row, left, width });
      narrow = null;
    } else if (narrow !== null && left - narrow.left < least) {
      narrow.width += width;
      narrow.joined += 1;
    } else if (width > 0) {
      narrow = { node, top: node, last: node, joined: 1, row, left, width };
      boxes.push(narrow);
    }
    left += width;
  }
  return boxes;
}

/** The nodes that a box stands for, the outermost first. */
export function within(tree: Tree, box: Box): number[] {
  const nodes = path(tree, box.last);
  return nodes.slice(nodes.indexOf(box.top));
}

/** The box that a node is drawn in, alone or in its chain. */
export function boxOf(tree: Tree, boxes: readonly Box[], node: number): Box | null {
  if (node < 0) return null;
  return boxes.find((box) => box.joined === 1 && (box.node === node || within(tree, box).includes(node))) ?? null;
}

/** The box at a place, if there is one. */
export function boxAt(boxes: readonly Box[], x: number, row: number): Box | null {
  return boxes.find((box) => box.row === row && x >= box.left && x < box.left + box.width) ?? null;
}

/** Nodes whose name holds the text, without regard to case. */
export function matches(tree: Tree, text: string): Set<number> {
  const wanted = text.toLowerCase();
  const hits = new Set<number>();
  if (wanted === "") return hits;
  tree.name.forEach((name, node) => name.toLowerCase().includes(wanted) && hits.add(node));
  return hits;
}

/** What the matches weigh together; one within another counts once. */
export function matched(tree: Tree, hits: ReadonlySet<number>): number {
  let sum = 0;
  const inside = new Uint8Array(tree.name.length);
  for (let node = 0; node < tree.name.length; node++) {
    const above = tree.parent[node] ?? -1;
    if (above >= 0 && inside[above] === 1) inside[node] = 1;
    else if (hits.has(node)) {
      inside[node] = 1;
      sum += weight(tree.total, node);
    }
  }
  return sum;
}

export type Way = "up" | "down" | "left" | "right";

/** Where an arrow leads: to what is around, to the heaviest within, to the siblings. */
export function stepped(tree: Tree, node: number, way: Way): number {
  if (node < 0) return tree.roots[0] ?? -1;
  const above = tree.parent[node] ?? -1;
  if (way === "up") return above >= 0 ? above : node;
  if (way === "down") return heaviest(tree, tree.children[node] ?? []) ?? node;
  const beside = above >= 0 ? (tree.children[above] ?? []) : tree.roots;
  const at = beside.indexOf(node) + (way === "right" ? 1 : -1);
  return beside[at] ?? node;
}

function heaviest(tree: Tree, nodes: readonly number[]): number | undefined {
  let best: number | undefined;
  for (const node of nodes) {
    if (best === undefined || weight(tree.total, node) > weight(tree.total, best)) best = node;
  }
  return best;
}
