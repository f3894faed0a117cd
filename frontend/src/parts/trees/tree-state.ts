// What a table of a tree keeps in the address: the nodes that were opened or closed, and the order of siblings.

import { change } from "../../route.ts";
import { parseNumbers, toggleNumber } from "./treerows.ts";

export interface TreeState {
  /** Nodes that the reader opened or closed. */
  toggled: ReadonlySet<number>;
  /** By which column siblings are sorted, with "-" before it for descending. */
  sort: string;
  /** What every `SortHead` of the table is given. */
  sorting: { sort: string; onSort: (next: string) => void };
  onToggle: (node: number) => void;
}

/** Reads it; `usual` is the order without a choice, and `sortKey` is where the order stands. */
export function treeState(params: Readonly<Record<string, string>>, usual: string, sortKey = "sort"): TreeState {
  const toggled = parseNumbers(params["toggled"]);
  const sort = params[sortKey] ?? usual;
  return {
    toggled,
    sort,
    sorting: { sort, onSort: (next) => change({ [sortKey]: next }) },
    // What is chosen keeps its row in sight: of a closed branch, the branch itself is chosen.
    onToggle: (node) => change({ toggled: toggleNumber(toggled, node), at: String(node) }),
  };
}
