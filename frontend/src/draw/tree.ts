// A tree with weighted nodes, and the layout of an icicle (pure).

/** A tree as arrays in pre-order; `parent` is -1 for a root. */
export interface Tree {
  name: readonly string[];
  parent: readonly number[];
  /** The weight of each node with its descendants. */
  total: readonly number[];
  children: readonly (readonly number[])[];
  roots: readonly number[];
  /** The weight of all roots. */
  whole: number;
  /** Where each node begins, in the unit of the weights; null if siblings are side by side. */
  begin: readonly number[] | null;
  /** What tells siblings apart; their names by default. */
  key: readonly string[];
}

/** How siblings are sorted; `given` leaves them as they are. */
export type Order = "weight" | "name" | "given";

/** Where the nodes of a tree in order of time are, and what tells siblings of one name apart. */
export interface Placed {
  begin: readonly number[] | null;
  key: readonly string[];
}

export function buildTree(
  name: readonly string[],
  parent: readonly (number | null)[],
  total: readonly number[],
  order: Order = "weight",
  placed: Placed = { begin: null, key: name },
): Tree {
  const children: number[][] = name.map(() => []);
  const roots: number[] = [];
  const above = parent.map((at) => at ?? -1);
  above.forEach((at, node) => (children[at] ?? roots).push(node));
  if (order !== "given") {
    const by = comparing(name, total, order);
    roots.sort(by);
    for (const below of children) below.sort(by);
  }
  const whole = roots.reduce((sum, node) => sum + weight(total, node), 0);
  return { name, parent: above, total, children, roots, whole, ...placed };
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

/** The nodes from the root to the given node. */
export function path(tree: Tree, node: number): number[] {
  const nodeAtPath: number[] = [];
  for (let at = node; at >= 0; at = tree.parent[at] ?? -1) nodeAtPath.unshift(at);
  return nodeAtPath;
}

/** The keys from the root to the node, which identify it in another table of the trace. */
export function pathNames(tree: Tree, node: number): string[] {
  return path(tree, node).map((at) => tree.key[at] ?? "");
}

/** The node at a path of keys, or the deepest existing one; -1 if none. */
export function nodeAtPath(tree: Tree, names: readonly string[]): number {
  let node = -1;
  for (const name of names) {
    const below = node < 0 ? tree.roots : (tree.children[node] ?? []);
    const next = below.find((at) => tree.key[at] === name);
    if (next === undefined) return node;
    node = next;
  }
  return node;
}

/** A rectangle: one node, or several adjacent siblings that are too narrow to distinguish. */
export interface Box {
  /** The node; for a chain the one that names it. */
  node: number;
  /** The first and last node of the chain; without a chain the node itself. */
  top: number;
  last: number;
  /** The number of merged siblings. */
  joined: number;
  row: number;
  left: number;
  width: number;
}

export interface Layout {
  boxes: Box[];
  /** The number of rows. */
  rows: number;
  /** The ancestors of the focused node, drawn over the full width. */
  above: number;
}

/** A node's role in a chain: it starts one and names it, continues one, or does either. */
export type Link = "begins" | "continues" | "begins or continues" | "stands alone";
export type Linked = (node: number) => Link;

const ALONE: Linked = () => "stands alone";
/** A child with nearly all of its parent's weight counts as its only child. */
const ONLY = 0.999;

/** The chain that begins with a node: each node but the last has a single child. */
function chain(tree: Tree, top: number, linked: Linked): { node: number; top: number; last: number } {
  let last = top;
  while (linked(last) !== "stands alone") {
    const next = heaviest(tree, tree.children[last] ?? []);
    if (next === undefined || !linked(next).endsWith("continues")) break;
    if (weight(tree.total, next) < ONLY * weight(tree.total, last)) break;
    last = next;
  }
  return { node: linked(top).startsWith("begins") ? top : last, top, last };
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
  const { origin, whole } = extent(tree, focus);
  const scale = whole > 0 ? width / whole : 0;
  const above = Math.max(boxes.length - 1, 0);
  let rows = boxes.length;
  const below = inner === undefined ? tree.roots : (tree.children[inner.last] ?? []);
  const open: Siblings[] = [{ nodes: below, row: boxes.length, left: 0, origin }];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    for (const box of side(tree, next, { scale, least, linked })) {
      boxes.push(box);
      rows = Math.max(rows, box.row + 1);
      const inside = box.joined === 1 && box.width >= least ? (tree.children[box.last] ?? []) : [];
      if (inside.length > 0) open.push({ nodes: inside, row: box.row + 1, left: box.left, origin: begin(tree, box.top) });
    }
  }
  return { boxes, rows, above };
}

/** Siblings to lay out: their row, and where it begins, in pixels and in the unit of the weights. */
interface Siblings {
  nodes: readonly number[];
  row: number;
  left: number;
  origin: number;
}

function begin(tree: Tree, node: number): number {
  return tree.begin?.[node] ?? 0;
}

/** Where what is over the full width begins, and how much it is. */
function extent(tree: Tree, focus: number): { origin: number; whole: number } {
  if (focus >= 0) return { origin: begin(tree, focus), whole: weight(tree.total, focus) };
  if (tree.begin === null) return { origin: 0, whole: tree.whole };
  const origin = tree.roots.reduce((least, node) => Math.min(least, begin(tree, node)), Infinity);
  const end = tree.roots.reduce((most, node) => Math.max(most, begin(tree, node) + weight(tree.total, node)), origin);
  return { origin, whole: end - origin };
}

/** The focused node and its ancestors, over the full width. */
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

/** Lays out siblings, merging narrow neighbours. */
function side(tree: Tree, siblings: Siblings, drawing: Drawing): Box[] {
  const { row, origin } = siblings;
  const { scale, least, linked } = drawing;
  const boxes: Box[] = [];
  let left = siblings.left;
  let narrow: Box | null = null;
  for (const node of siblings.nodes) {
    if (tree.begin !== null) left = siblings.left + (begin(tree, node) - origin) * scale;
    const width = weight(tree.total, node) * scale;
    if (width >= least) {
      boxes.push({ ...chain(tree, node, linked), joined: 1, row, left, width });
      narrow = null;
    } else if (narrow !== null && left - narrow.left < least) {
      narrow.width = left + width - narrow.left;
      narrow.joined += 1;
    } else if (width > 0) {
      narrow = { node, top: node, last: node, joined: 1, row, left, width };
      boxes.push(narrow);
    }
    left += width;
  }
  return boxes;
}

/** The same from the bottom up: the roots in the last row. */
export function upsideDown(laid: Layout): Layout {
  return { ...laid, boxes: laid.boxes.map((box) => ({ ...box, row: laid.rows - 1 - box.row })) };
}

/** The nodes of a box, the outermost first. */
export function nodesOfBox(tree: Tree, box: Box): number[] {
  const nodes = path(tree, box.last);
  return nodes.slice(nodes.indexOf(box.top));
}

/** The box that contains a node. */
export function boxOf(tree: Tree, boxes: readonly Box[], node: number): Box | null {
  if (node < 0) return null;
  return boxes.find((box) => box.joined === 1 && (box.node === node || nodesOfBox(tree, box).includes(node))) ?? null;
}

/** The box at a position; undefined if none. */
export function boxAt(boxes: readonly Box[], x: number, row: number): Box | null {
  return boxes.find((box) => box.row === row && x >= box.left && x < box.left + box.width) ?? null;
}

/** Nodes whose name contains the text, ignoring case. */
export function matches(tree: Tree, text: string): Set<number> {
  const wanted = text.toLowerCase();
  const hits = new Set<number>();
  if (wanted === "") return hits;
  tree.name.forEach((name, node) => name.toLowerCase().includes(wanted) && hits.add(node));
  return hits;
}

/** The total weight of the matches; nested matches count once. */
export function matchedWeight(tree: Tree, hits: ReadonlySet<number>): number {
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

export type Direction = "up" | "down" | "left" | "right";

/** The node that an arrow key leads to: the parent, the heaviest child, or a sibling. */
export function neighbourNode(tree: Tree, node: number, way: Direction): number {
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
