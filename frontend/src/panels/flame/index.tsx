// The panel of the flame graph.

import "./style.css";
import { useEffect, useMemo, useState } from "preact/hooks";
import type { Box, Order } from "../../draw/tree.ts";
import { nodeAtPath, matchedWeight, matches, pathNames, nodesOfBox } from "../../draw/tree.ts";
import { QueryResult, useQuery } from "../../parts/data/asking.tsx";
import { Find } from "../../parts/controls/find.tsx";
import { Icicle } from "../../parts/trees/icicle.tsx";
import type { IcicleProps } from "../../parts/trees/icicle.tsx";
import { KEYS } from "../../parts/controls/keys.tsx";
import { MissingData, MissingDataNote } from "../../parts/text/missing-data.tsx";
import { plain } from "../../parts/text/plain.ts";
import type { FullTable } from "../../parts/data/full-table.ts";
import { MOST, loadTable } from "../../parts/data/full-table.ts";
import { change } from "../../route.ts";
import { shareText, timeText } from "../../units.ts";
import type { Panel, PanelProps } from "../panel.ts";
import { Details } from "./details.tsx";
import type { Frames } from "./frames.ts";
import { COLOURS, minimumShare, framesOf, label, linkOf } from "./frames.ts";
import { Tools } from "./tools.tsx";

KEYS["flame"] = [
  ["Arrows", "walk the tree: around, within, beside"],
  ["Enter, click", "focus: over the full width"],
  ["Backspace", "back to what is around"],
  ["Home", "everything again"],
];

function Flame(props: PanelProps) {
  const { data, trace, params } = props;
  const options = {
    metric: params["metric"] ?? "auto",
    by: params["by"] ?? "stack",
    thread: params["thread"] ?? "",
    counted: params["counted"] === "true",
    min_share: Number(params["detail"] ?? 0.001) || 0.001,
  };
  const key = JSON.stringify([trace.id, options]);
  const asked = useQuery(() => loadTable(data, trace.id, "flame", options), key);
  const finer = asked.state === "here" && asked.stale;
  return (
    <div class="flame">
      <Tools params={params} />
      <QueryResult asked={asked.state === "here" ? { ...asked, stale: false } : asked}>
        {(table) => <Graph {...props} table={table} pending={finer} of={key} />}
      </QueryResult>
    </div>
  );
}

function Graph(props: PanelProps & { table: FullTable; pending: boolean; of: string }) {
  const { table, params } = props;
  const order: Order = params["order"] === "name" ? "name" : "weight";
  const frames = useMemo(() => framesOf(table, order), [table, order]);
  if (frames.tree.whole === 0) return <Nothing frames={frames} params={params} />;
  return <Drawn {...props} frames={frames} />;
}

function Nothing(props: { frames: Frames; params: PanelProps["params"] }) {
  const { table, metric } = props.frames;
  const narrowed = props.params["thread"] || props.params["counted"] === "true";
  return (
    <MissingData title={metric === "device" ? "No device time was recorded" : "No time was recorded"} lacks={table.lacks}>
      {metric === "device" && (
        <button type="button" onClick={() => change({ metric: "host", focus: undefined })}>show host time</button>
      )}
      {narrowed && (
        <button type="button" onClick={() => change({ thread: undefined, counted: undefined })}>
          show all threads and steps
        </button>
      )}
    </MissingData>
  );
}

/** The node in the URL, if the table has it. */
function nodeOf(word: string | undefined, frames: Frames): number {
  const node = Number(word ?? -1);
  return Number.isInteger(node) && node < frames.tree.name.length ? node : -1;
}

interface DrawnProps extends PanelProps {
  table: FullTable;
  pending: boolean;
  of: string;
  frames: Frames;
}

function Drawn(props: DrawnProps) {
  const { frames, params } = props;
  const { tree } = frames;
  const [hover, setHover] = useState<Box | null>(null);
  const focus = nodeOf(params["focus"], frames);
  const cursor = nodeOf(params["at"] ?? params["focus"], frames);
  const find = params["find"] ?? "";
  const hits = useMemo(() => (find === "" ? null : matches(tree, find)), [tree, find]);
  const share = hits === null || tree.whole === 0 ? null : matchedWeight(tree, hits) / tree.whole;
  const focusOn = useFocus(props);
  const shown = hover ?? { node: cursor, joined: 1 };
  return (
    <>
      <Summary {...props} find={find} hits={hits === null ? null : hits.size} share={share} />
      <Icicle
        {...useLook(frames, params["fold"] !== "no")}
        tree={tree}
        describe={(node) => `${plain(tree.name[node] ?? "")}: ${timeText(tree.total[node] ?? 0)}`}
        focus={focus}
        cursor={cursor}
        hits={hits}
        title={`${frames.metric} time by call tree`}
        onHover={setHover}
        onChoose={(node) => change({ at: node < 0 ? undefined : String(node) })}
        onPress={focusOn}
        onFocus={focusOn}
      />
      <Details
        {...props}
        node={shown.node}
        joined={shown.joined}
        chain={hover === null ? [] : nodesOfBox(tree, hover)}
        focus={focus}
        onFocus={focusOn}
      />
    </>
  );
}

/** Focuses a node, and loads more detail if needed. */
function useFocus(props: DrawnProps): (node: number) => void {
  const { data, table, pending, frames: { tree } } = props;
  // A finer table numbers its nodes anew; the names from the root on find them again.
  const [sought, setSought] = useState<string[] | null>(null);
  useEffect(() => {
    if (sought === null || pending) return;
    const node = nodeAtPath(tree, sought);
    setSought(null);
    change({ focus: node < 0 ? undefined : String(node), at: node < 0 ? undefined : String(node) });
  }, [table, pending]);
  return (node) => {
    const wanted = minimumShare(node < 0 ? 1 : (tree.total[node] ?? 0) / tree.whole);
    // A report has no finer detail.
    const isFiner = !data.inline && wanted < Number(table.options["min_share"]);
    setSought(isFiner ? pathNames(tree, node) : null);
    const to = node < 0 ? undefined : String(node);
    change({ focus: to, at: to, ...(isFiner ? { detail: String(wanted) } : {}) }, { replace: false });
  };
}

/** Colours, names and chains; the same for as long as the tree is, so that it is not laid out anew. */
function useLook(frames: Frames, joined: boolean): Pick<IcicleProps, "colour" | "label" | "linked"> {
  return useMemo(() => {
    const { tree, kind } = frames;
    const text = (box: Box) => {
      const others = nodesOfBox(tree, box).length - 1;
      const name = plain(label(tree.name[box.node] ?? "", kind[box.node] ?? ""));
      return others > 0 ? `${name}  +${others}` : name;
    };
    const look = { colour: (node: number) => COLOURS[kind[node] ?? ""] ?? "other", label: text };
    return joined ? { ...look, linked: (node: number) => linkOf(kind[node]) } : look;
  }, [frames, joined]);
}

function Summary(props: { frames: Frames; pending: boolean; find: string; hits: number | null; share: number | null }) {
  const { frames, hits, share } = props;
  const { table, tree } = frames;
  return (
    <div class="flame-summary">
      <span>
        {timeText(tree.whole)} <span class="muted">{frames.metric} time in {table.rows} nodes</span>
      </span>
      {hits !== null && share !== null && (
        <span role="status" class="flame-found">
          {hits === 0 ? "nothing matches" : `${hits} nodes match: ${shareText(share)} of the time`}
        </span>
      )}
      {table.rows < table.total && (
        <span class="muted">the first {MOST} of {table.total} nodes are drawn</span>
      )}
      <MissingDataNote lacks={table.lacks} />
      {props.pending && <span class="muted" role="status">reading finer detail …</span>}
      <Find
        label="Search names"
        value={props.find}
        onChange={(find) => change({ find: find === "" ? undefined : find })}
      />
    </div>
  );
}

export const flame: Panel = { name: "flame", title: "Flame", group: "time", component: Flame };
