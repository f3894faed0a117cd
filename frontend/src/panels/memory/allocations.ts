// The view `memory_flame` as a tree of one device, with facts about its nodes (pure).

import type { Link, Tree } from "../../draw/tree.ts";
import { buildTree } from "../../draw/tree.ts";
import type { FullTable } from "../../parts/data/full-table.ts";
import { number, numbers, textAt, texts } from "../../parts/data/full-table.ts";

export interface Allocations {
  tree: Tree;
  kind: readonly string[];
  table: FullTable;
}

/** The rows of one device name their parents by numbers among the rows of all. */
export function allocationsOf(table: FullTable): Allocations {
  const place = new Map(numbers(table, "id").map((id, row) => [id, row]));
  const parent = (table.columns["parent"] ?? []).map((id) => (typeof id === "number" ? place.get(id) ?? null : null));
  return { tree: buildTree(texts(table, "name"), parent, numbers(table, "bytes")), kind: texts(table, "kind"), table };
}

/** Frames of libraries are drawn in one box with what called them; the user's own stand alone. */
export function linkOf({ kind, table }: Allocations, node: number): Link {
  if (kind[node] === "module" || textAt(table, "origin", node) === "user") return "begins";
  return kind[node] === "frame" ? "continues" : "stands alone";
}

export interface NodeFacts {
  name: string;
  total: number;
  own: number;
  blocks: number;
  /** Share of the device's memory. */
  share: number;
  file: string | null;
  line: number | null;
}

export function nodeFacts({ tree, table }: Allocations, node: number): NodeFacts {
  const total = tree.total[node] ?? 0;
  return {
    name: tree.name[node] ?? "",
    total,
    own: number(table, "self_bytes", node) ?? 0,
    blocks: number(table, "blocks", node) ?? 0,
    share: tree.whole > 0 ? total / tree.whole : 0,
    file: textAt(table, "file", node),
    line: number(table, "line", node),
  };
}
