// The panel of the flame graph: call trees in four arrangements, beside the list of all names.

import "./style.css";
import { useMemo } from "preact/hooks";
import { Empty, QueryResult, Waiting, useQuery } from "../../parts/data/asking.tsx";
import { KEYS } from "../../parts/controls/keys.tsx";
import type { FullTable } from "../../parts/data/full-table.ts";
import { loadTable } from "../../parts/data/full-table.ts";
import type { Panel, PanelProps } from "../panel.ts";
import { arrangementOf, detailOf, sharedOptions } from "./arrangement.ts";
import { framesOf } from "./frames.ts";
import { Graph } from "./graph.tsx";
import { InTime } from "./in-time.tsx";
import type { NameRow } from "./names.ts";
import { chosenName, nameOfLine, nameRows, sortedNames } from "./names.ts";
import { Names } from "./names.tsx";
import { Sandwich } from "./sandwich.tsx";
import { Tools } from "./tools.tsx";

KEYS["flame"] = [
  ["Arrows", "walk the tree: around, within, beside; in the list, from name to name"],
  ["Enter, click", "focus: over the full width; in the list, callers and callees"],
  ["Backspace", "back to what is around"],
  ["Home", "everything again"],
];

function Flame(props: PanelProps) {
  const { data, trace, params } = props;
  const options = { order: "flat", ...sharedOptions(params, data.inline) };
  const asked = useQuery(() => loadTable(data, trace.id, "flame", options), JSON.stringify([trace.id, options]));
  const table = asked.state === "here" ? asked.value : null;
  return (
    <div class="flame">
      <Tools params={params} isReport={data.inline} />
      <Arranged {...props} table={table} />
    </div>
  );
}

/** The list, once it is there, and the graph. */
function Arranged(props: PanelProps & { table: FullTable | null }) {
  const { table, params } = props;
  const names = useMemo(() => (table === null ? [] : nameRows(table)), [table]);
  const tree = arrangementOf(params);
  const { name, kind } = useMemo(() => between(params, names), [params, names]);
  const chosen = tree === "sandwich" ? chosenName(names, name, kind) : undefined;
  return (
    <div class="flame-body">
      {params["names"] !== "no" && names.length > 0 && <Names params={params} names={names} chosen={chosen} />}
      <div class="flame-graph">
        {tree === "time" ? <InTime {...props} />
        : tree === "sandwich" && name !== undefined ? <Sandwich {...props} name={name} kind={kind ?? ""} />
        : tree === "sandwich" && table === null ? <Waiting />
        : tree === "sandwich" && params["file"] !== undefined ? <Empty title="No frame of this line" text={NO_FRAME} />
        : <Whole {...props} />}
      </div>
    </div>
  );
}

const NO_FRAME = "No recorded function that contains this line takes a thousandth of the time that is shown.";

/** The name between callers and callees: that of the address, of its line, or that with most self time. */
function between(params: PanelProps["params"], names: readonly NameRow[]): { name?: string | undefined; kind?: string | undefined } {
  const { of: name, kind, file, line } = params;
  if (name !== undefined) return { name, kind };
  if (file === undefined) return sortedNames(names, undefined, "")[0] ?? {};
  return nameOfLine(names, { file, line: Number(line), function: params["function"] }) ?? {};
}

/** The whole tree, top down or bottom up. */
function Whole(props: PanelProps) {
  const { data, trace, params } = props;
  const isInverted = arrangementOf(params) === "bottom_up";
  const options = {
    ...sharedOptions(params, data.inline),
    ...(isInverted ? { order: "bottom_up" } : {}),
    min_share: detailOf(params),
  };
  const asked = useQuery(() => loadTable(data, trace.id, "flame", options), JSON.stringify([trace.id, options]));
  const finer = asked.state === "here" && asked.stale;
  return (
    <QueryResult asked={asked.state === "here" ? { ...asked, stale: false } : asked}>
      {(table) => <OfTable {...props} table={table} pending={finer} isInverted={table.options["order"] === "bottom_up"} />}
    </QueryResult>
  );
}

function OfTable(props: PanelProps & { table: FullTable; pending: boolean; isInverted: boolean }) {
  const { table, params, isInverted } = props;
  const sorted = params["order"] === "name" ? "name" : "weight";
  const frames = useMemo(
    () => framesOf(table, sorted, isInverted ? "callers of self time" : "callees"),
    [table, sorted, isInverted],
  );
  return <Graph {...props} frames={frames} />;
}

export const flame: Panel = { name: "flame", title: "Flame", group: "time", component: Flame };
