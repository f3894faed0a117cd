// How nodes look: their colours, their names, and the chains that they are drawn in.

import { useMemo } from "preact/hooks";
import type { Box } from "../../draw/tree.ts";
import { nodesOfBox } from "../../draw/tree.ts";
import { plain } from "../../parts/text/plain.ts";
import type { IcicleProps } from "../../parts/trees/icicle.tsx";
import { timeText } from "../../units.ts";
import type { Frames } from "./frames.ts";
import { COLOURS, label, linkOf } from "./frames.ts";

type Look = Pick<IcicleProps, "tree" | "colour" | "label" | "linked" | "describe">;

/** The same for as long as the tree is, so that it is not laid out anew. */
export function useLook(frames: Frames, joined: boolean): Look {
  return useMemo(() => {
    const { tree, kind, direction } = frames;
    const text = (box: Box) => {
      const others = nodesOfBox(tree, box).length - 1;
      const name = plain(label(tree.name[box.node] ?? "", kind[box.node] ?? ""));
      return others > 0 ? `${name}  +${others}` : name;
    };
    const look: Look = {
      tree,
      colour: (node) => COLOURS[kind[node] ?? ""] ?? "other",
      label: text,
      describe: (node) => `${plain(tree.name[node] ?? "")}: ${timeText(tree.total[node] ?? 0)}`,
    };
    return joined ? { ...look, linked: (node: number) => linkOf(kind[node], direction) } : look;
  }, [frames, joined]);
}
