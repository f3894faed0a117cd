// One name between what it was called from and what it called.

import { useMemo, useState } from "preact/hooks";
import type { Box } from "../../draw/tree.ts";
import { matches, nodesOfBox } from "../../draw/tree.ts";
import { Icicle } from "../../parts/trees/icicle.tsx";
import { QueryResult, useQuery } from "../../parts/data/asking.tsx";
import type { FullTable } from "../../parts/data/full-table.ts";
import { loadTable, number } from "../../parts/data/full-table.ts";
import { MissingData } from "../../parts/text/missing-data.tsx";
import { plain } from "../../parts/text/plain.ts";
import { change } from "../../route.ts";
import { countText, shareText, timeText } from "../../units.ts";
import type { PanelProps } from "../panel.ts";
import { AFRESH, detailOf, sharedOptions } from "./arrangement.ts";
import { Details, Swatch } from "./details.tsx";
import type { Side } from "./focus.ts";
import { nodeOf, useFocus, wordOf } from "./focus.ts";
import type { Frames } from "./frames.ts";
import { deepest, framesOf, metricOf } from "./frames.ts";
import { useLook } from "./look.ts";
import { Summary } from "./summary.tsx";

interface Tables {
  callers: FullTable;
  callees: FullTable;
}

interface Props extends PanelProps {
  name: string;
  kind: string;
  /** The flat profile, which tells whose time it is. */
  table: FullTable | null;
}

export function Sandwich(props: Props) {
  const { data, trace, params, name, kind } = props;
  const options = { ...sharedOptions(params, data.inline), of: name, kind, min_share: detailOf(params) };
  const key = JSON.stringify([trace.id, options]);
  const ask = async (): Promise<Tables> => {
    const [callers, callees] = await Promise.all(
      ["bottom_up", "top_down"].map((order) => loadTable(data, trace.id, "flame", { ...options, order })),
    );
    return { callers: callers!, callees: callees! };
  };
  const asked = useQuery(ask, key);
  const pending = asked.state === "here" && asked.stale;
  return (
    <QueryResult asked={asked.state === "here" ? { ...asked, stale: false } : asked}>
      {(tables) => <Both {...props} tables={tables} pending={pending} />}
    </QueryResult>
  );
}

function Both(props: Props & { tables: Tables; pending: boolean }) {
  const { tables, params, name } = props;
  const sorted = params["order"] === "name" ? "name" : "weight";
  const metric = metricOf(props.table ?? tables.callees);
  const callers = useMemo(() => framesOf(tables.callers, sorted, "callers", metric), [tables, sorted, metric]);
  const callees = useMemo(() => framesOf(tables.callees, sorted, "callees", metric), [tables, sorted, metric]);
  if (callees.tree.whole === 0) {
    return (
      <MissingData title={`${plain(name)} has no ${callees.metric} time`} lacks={tables.callees.lacks}>
        {metric === "device" && (
          <button type="button" onClick={() => change({ ...AFRESH, metric: "host" })}>show host time</button>
        )}
      </MissingData>
    );
  }
  return <Drawn {...props} callers={callers} callees={callees} />;
}

interface DrawnProps extends Props {
  pending: boolean;
  callers: Frames;
  callees: Frames;
}

function Drawn(props: DrawnProps) {
  const { callers, callees, params, data, pending } = props;
  const [hover, setHover] = useState<{ side: Side; box: Box } | null>(null);
  const find = params["find"] ?? "";
  const hits = useMemo(
    () => (find === "" ? null : { u: matches(callers.tree, find), "": matches(callees.tree, find) }),
    [callers, callees, find],
  );
  const focusOn = {
    u: useFocus({ data, pending, frames: callers, side: "u" }),
    "": useFocus({ data, pending, frames: callees }),
  };
  const cursorWord = params["at"] ?? params["focus"];
  const side: Side = hover?.side ?? (cursorWord?.startsWith("u") ? "u" : "");
  const frames = side === "u" ? callers : callees;
  const focus = nodeOf(params["focus"], frames, side);
  const half = (of: Side, title: string) => (
    <Half
      {...props} frames={of === "u" ? callers : callees} side={of} title={title} hits={hits?.[of] ?? null} onFocus={focusOn[of]}
      onHover={(box) => setHover(box && { side: of, box })}
    />
  );
  const found = hits && hits.u.size + hits[""].size;
  return (
    <>
      <Summary table={callees.table} pending={pending} find={find} found={null}>
        <span class="muted">Callers of the name above, what it called below</span>
        {found !== null && <span role="status" class="flame-found">{found === 0 ? "nothing matches" : `${found} nodes match`}</span>}
      </Summary>
      {half("u", `${callees.metric} time by callers`)}
      <Middle frames={callees} />
      {half("", `${callees.metric} time by callees`)}
      <Details
        {...props}
        frames={frames}
        node={hover?.box.node ?? nodeOf(cursorWord, frames, side)}
        joined={hover?.box.joined ?? 1}
        chain={hover === null ? [] : nodesOfBox(frames.tree, hover.box)}
        focus={focus}
        onFocus={focusOn[side]}
      />
    </>
  );
}

/** So many rows at most share the height by how many they are. */
const MOST_ROWS = 24;

interface HalfProps extends PanelProps {
  frames: Frames;
  side: Side;
  title: string;
  hits: ReadonlySet<number> | null;
  onFocus: (node: number) => void;
  onHover: (box: Box | null) => void;
}

function Half(props: HalfProps) {
  const { frames, side, params } = props;
  return (
    <Icicle
      {...useLook(frames, params["fold"] !== "no")}
      grow={useMemo(() => Math.min(deepest(frames.tree), MOST_ROWS), [frames])}
      upward={side === "u"}
      focus={nodeOf(params["focus"], frames, side)}
      cursor={nodeOf(params["at"] ?? params["focus"], frames, side)}
      hits={props.hits}
      title={props.title}
      onHover={props.onHover}
      onChoose={(node) => change({ at: wordOf(node, side) })}
      onPress={props.onFocus}
      onFocus={props.onFocus}
    />
  );
}

/** The figures of the name, between the two. */
function Middle(props: { frames: Frames }) {
  const { tree, table, kind, metric } = props.frames;
  const [root = 0] = tree.roots;
  const [self, share, count] = ["self_time", "share", "count"].map((column) => number(table, column, root) ?? 0);
  return (
    <p class="flame-middle">
      <Swatch kind={kind[root] ?? "other"} />
      <span>{timeText(tree.total[root] ?? 0)} <span class="muted">{metric} time</span></span>
      <span>{timeText(self ?? 0)} <span class="muted">self</span></span>
      <span>{shareText(share ?? 0)} <span class="muted">of all</span></span>
      <span>{countText(count ?? 0)} <span class="muted">{count === 1 ? "run" : "runs"}</span></span>
    </p>
  );
}
