// The focused node: which one the address has, and how another gets the focus.

import { useEffect, useState } from "preact/hooks";
import { nodeAtPath, pathNames } from "../../draw/tree.ts";
import { change } from "../../route.ts";
import type { PanelProps } from "../panel.ts";
import type { Frames } from "./frames.ts";
import { minimumShare } from "./frames.ts";

/** What a node's number begins with in the address: nothing, or `u` of the upper tree of a sandwich. */
export type Side = "" | "u";

/** The node in the URL, if the table has it. */
export function nodeOf(word: string | undefined, frames: Frames, side: Side = ""): number {
  if (word === undefined || !word.startsWith(side)) return -1;
  const node = Number(word.slice(side.length) || "none");
  return Number.isInteger(node) && node >= 0 && node < frames.tree.name.length ? node : -1;
}

/** The number of a node in the address. */
export function wordOf(node: number, side: Side = ""): string | undefined {
  return node < 0 ? undefined : `${side}${node}`;
}

interface Asked {
  data: PanelProps["data"];
  frames: Frames;
  pending: boolean;
  side?: Side;
}

/** Focuses a node, and loads more detail if needed. */
export function useFocus({ data, frames, pending, side = "" }: Asked): (node: number) => void {
  const { tree, table } = frames;
  // A finer table numbers its nodes anew; the names from the root on find them again.
  const [sought, setSought] = useState<string[] | null>(null);
  useEffect(() => {
    if (sought === null || pending) return;
    const node = nodeAtPath(tree, sought);
    setSought(null);
    change({ focus: wordOf(node, side), at: wordOf(node, side) });
  }, [table, pending]);
  return (node) => {
    const wanted = minimumShare(node < 0 ? 1 : (tree.total[node] ?? 0) / tree.whole);
    // A report has no finer detail.
    const isFiner = !data.inline && wanted < Number(table.options["min_share"]);
    setSought(isFiner ? pathNames(tree, node) : null);
    const to = wordOf(node, side);
    change({ focus: to, at: to, ...(isFiner ? { detail: String(wanted) } : {}) }, { replace: false });
  };
}
