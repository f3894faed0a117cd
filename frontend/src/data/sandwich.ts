// What a name called, and what it was called from, made of the flame graph that a report carries
// (pure). The server's view `flame` makes the same of the whole trace.

import type { Cell } from "./api.ts";
import type { Table } from "./table.ts";
import { valueAt } from "./table.ts";

/** What the view `flame` calls nodes that are too small to be shown one by one. */
const MERGED = "(other)";
const NAMED = ["name", "kind", "file", "line"] as const;

interface Node {
  /** Name, kind, file and line. */
  words: Cell[];
  total: number;
  self: number;
  count: number;
  below: Map<string, Node>;
}

/**
 * The table of a name: `top_down` with what it called, `bottom_up` with what it was called from.
 * `whole` is the time of the name in the whole trace, `kind` "" any kind. What of it is within merged
 * branches of the graph is a node of its own. Null if the graph does not have the name.
 */
export function sandwich(graph: Table, order: string, name: string, kind: string, whole: number | null): Table | null {
  const cell = (column: string, row: number) => valueAt(graph.values[column] ?? { values: [] }, row);
  const number = (column: string, row: number) => Number(cell(column, row) ?? 0);
  const rowOfId = new Map(Array.from({ length: graph.rows }, (_, row) => [cell("id", row), row]));
  const above = Array.from({ length: graph.rows }, (_, row) => rowOfId.get(cell("parent", row)) ?? -1);
  const isNamed = above.map((_, row) => cell("name", row) === name && (kind === "" || cell("kind", row) === kind));
  const within: boolean[] = []; // of each row whether it, or a row above it, is of the name
  above.forEach((parent, row) => within.push(isNamed[row] === true || within[parent] === true));
  const outermost = above.flatMap((parent, row) => (isNamed[row] === true && within[parent] !== true ? [row] : []));
  const first = outermost[0];
  if (first === undefined) return null;

  const words = (row: number) => NAMED.map((column) => cell(column, row));
  const root: Node = { words: words(first), total: 0, self: 0, count: 0, below: new Map() };
  const add = (node: Node, total: number, self: number, count: number) => {
    node.total += total;
    node.self += self;
    node.count += count;
  };
  for (const row of outermost) add(root, number("total_time", row), number("self_time", row), number("count", row));
  if (order === "bottom_up") {
    root.self = 0;
    for (const row of outermost) {
      let node = root;
      for (let at = above[row] ?? -1; at >= 0; at = above[at] ?? -1) {
        node = child(node, words(at));
        add(node, number("total_time", row), 0, number("count", row));
      }
      node.self += number("total_time", row);
    }
  } else {
    const nodes = new Map(outermost.map((row) => [row, root]));
    above.forEach((parent, row) => {
      const over = nodes.get(parent);
      if (over === undefined || nodes.has(row)) return;
      const node = child(over, words(row));
      add(node, number("total_time", row), number("self_time", row), number("count", row));
      nodes.set(row, node);
    });
  }
  const lacking = (whole ?? 0) - root.total;
  if (lacking > 0) {
    root.total += lacking;
    add(child(root, [MERGED, root.words[1] ?? null, null, null]), lacking, lacking, 0);
  }
  return tableOf(root, graph);
}

function child(node: Node, words: Cell[]): Node {
  const key = JSON.stringify(words);
  const known = node.below.get(key) ?? { words, total: 0, self: 0, count: 0, below: new Map<string, Node>() };
  node.below.set(key, known);
  return known;
}

/** The nodes in pre-order, the heaviest branch first, with the columns of the graph. */
function tableOf(root: Node, graph: Table): Table {
  const columns: Record<string, Cell[]> = Object.fromEntries(Object.keys(graph.values).map((column) => [column, []]));
  let rows = 0;
  const put = (node: Node, parent: number | null, depth: number) => {
    const id = rows++;
    const [name = null, kind = null, file = null, line = null] = node.words;
    const values: Record<string, Cell> = {
      ...{ name, kind, file, line, id, parent, depth },
      total_time: node.total,
      share: root.total > 0 ? node.total / root.total : 0,
      self_time: node.self,
      count: node.count,
    };
    for (const [column, cells] of Object.entries(columns)) cells.push(values[column] ?? null);
    for (const below of [...node.below.values()].sort((a, b) => b.total - a.total)) put(below, id, depth + 1);
  };
  put(root, null, 0);
  const values = Object.fromEntries(Object.entries(columns).map(([column, cells]) => [column, { values: cells }]));
  return { columns: graph.columns, values, rows };
}
