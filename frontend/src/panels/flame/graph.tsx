// One tree as a flame graph: top down, bottom up, or one thread in time.

import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { Box } from "../../draw/tree.ts";
import { matchedWeight, matches, nodesOfBox } from "../../draw/tree.ts";
import { Icicle } from "../../parts/trees/icicle.tsx";
import { MissingData } from "../../parts/text/missing-data.tsx";
import { change } from "../../route.ts";
import { timeText } from "../../units.ts";
import type { PanelProps } from "../panel.ts";
import { AFRESH } from "./arrangement.ts";
import { Details } from "./details.tsx";
import { nodeOf, useFocus, wordOf } from "./focus.ts";
import type { Frames } from "./frames.ts";
import { useLook } from "./look.ts";
import { Summary } from "./summary.tsx";

export interface GraphProps extends PanelProps {
  frames: Frames;
  /** Whether a finer table is on its way. */
  pending: boolean;
  /** More beside the time of the whole. */
  children?: ComponentChildren;
}

export function Graph(props: GraphProps) {
  const { frames, params } = props;
  if (frames.tree.whole === 0) return <Nothing frames={frames} params={params} />;
  return <Drawn {...props} />;
}

export function Nothing(props: { frames: Frames; params: PanelProps["params"] }) {
  const { table, metric } = props.frames;
  const narrowed = props.params["thread"] || props.params["counted"] === "true";
  return (
    <MissingData title={metric === "device" ? "No device time was recorded" : "No time was recorded"} lacks={table.lacks}>
      {metric === "device" && (
        <button type="button" onClick={() => change({ ...AFRESH, metric: "host" })}>show host time</button>
      )}
      {narrowed && (
        <button type="button" onClick={() => change({ ...AFRESH, thread: undefined, counted: undefined })}>
          show all threads and steps
        </button>
      )}
    </MissingData>
  );
}

const TITLES = {
  "callees": "time by call tree",
  "callers of self time": "self time, with its callers",
  "callers": "time by callers",
};

function Drawn(props: GraphProps) {
  const { frames, params } = props;
  const { tree, table } = frames;
  const [hover, setHover] = useState<Box | null>(null);
  const focus = nodeOf(params["focus"], frames);
  const cursor = nodeOf(params["at"] ?? params["focus"], frames);
  const find = params["find"] ?? "";
  const hits = useMemo(() => (find === "" ? null : matches(tree, find)), [tree, find]);
  const found = hits && { nodes: hits.size, share: matchedWeight(tree, hits) / tree.whole };
  const focusOn = useFocus(props);
  const shown = hover ?? { node: cursor, joined: 1 };
  return (
    <>
      <Summary table={table} pending={props.pending} find={find} found={found}>
        <span>
          {timeText(tree.whole)} <span class="muted">{frames.metric} time in {table.rows} nodes</span>
        </span>
        {props.children}
      </Summary>
      <Icicle
        {...useLook(frames, params["fold"] !== "no")}
        focus={focus}
        cursor={cursor}
        hits={hits}
        title={`${frames.metric} ${TITLES[frames.direction]}`}
        onHover={setHover}
        onChoose={(node) => change({ at: wordOf(node) })}
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
