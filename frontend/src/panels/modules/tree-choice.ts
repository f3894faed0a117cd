// What of a tree the reader looks at: the root, the chosen node, what a search finds, what is pointed at.

import { useMemo, useState } from "preact/hooks";
import type { Box, Tree } from "../../draw/tree.ts";
import { matchedWeight, matches } from "../../draw/tree.ts";
import { nodeInAddress } from "../../parts/trees/treerows.ts";
import { change } from "../../route.ts";
import type { PanelProps } from "../panel.ts";

export interface TreeChoice {
  root: number;
  at: number;
  hits: ReadonlySet<number> | null;
  found: { count: number; share: number } | null;
  /** The node whose details are shown; -1 for none. */
  shown: number;
  choose: (node: number) => void;
  focus: (node: number) => void;
  hover: (box: Box | null) => void;
}

export function useTreeChoice(tree: Tree, params: PanelProps["params"]): TreeChoice {
  const [hovered, setHovered] = useState(-1);
  const root = nodeInAddress(params["root"], tree);
  const at = nodeInAddress(params["at"], tree);
  const find = params["find"] ?? "";
  const hits = useMemo(() => (find === "" ? null : matches(tree, find)), [tree, find]);
  return {
    root,
    at,
    hits,
    found: hits && { count: hits.size, share: tree.whole > 0 ? matchedWeight(tree, hits) / tree.whole : 0 },
    shown: hovered >= 0 ? hovered : at >= 0 ? at : root,
    choose: (node) => change({ at: node < 0 ? undefined : String(node) }),
    focus: (node) => {
      const to = node < 0 ? undefined : String(node);
      change({ root: to, at: to ?? params["at"] }, { replace: false });
    },
    hover: (box) => setHovered(box?.joined === 1 ? box.node : -1),
  };
}
