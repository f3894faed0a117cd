// The footer below a tree: the details of a node, and the ways out of a part of the tree.

import type { ComponentChildren } from "preact";
import type { Tree } from "../../draw/tree.ts";

interface NodeFooterProps {
  tree: Tree;
  /** The root of the shown tree; -1 for all. */
  root: number;
  onFocus: (node: number) => void;
  children: ComponentChildren;
}

export function NodeFooter({ tree, root, onFocus, children }: NodeFooterProps) {
  return (
    <footer class="modules-details">
      <div class="modules-node">{children}</div>
      {root >= 0 && (
        <span class="modules-moves">
          <button type="button" onClick={() => onFocus(tree.parent[root] ?? -1)}>what is around it</button>
          <button type="button" onClick={() => onFocus(-1)}>show all</button>
        </span>
      )}
    </footer>
  );
}
