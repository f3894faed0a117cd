// The panel that compares two recordings, and shows views of both side by side.

import "./style.css";
import type { Pair, TraceInfo } from "../../data/api.ts";
import { QueryResult, Empty, useQuery } from "../../parts/data/asking.tsx";
import { Choice } from "../../parts/controls/choice.tsx";
import { Find } from "../../parts/controls/find.tsx";
import { KEYS } from "../../parts/controls/keys.tsx";
import { plain } from "../../parts/text/plain.ts";
import { areUnrelated } from "../../parts/data/unrelated-traces.ts";
import { loadTable } from "../../parts/data/full-table.ts";
import { change, link } from "../../route.ts";
import type { Panel, PanelProps } from "../panel.ts";
import { Difference } from "./difference.tsx";
import type { ComparableView } from "./tables/comparable-views.ts";
import { COMPARABLE_VIEWS } from "./tables/comparable-views.ts";
import { stepsOf } from "./tables/merging.ts";
import { Overview, Tables } from "./tables/tables.tsx";

KEYS["compare"] = [
  ["Arrows", "walk the flame graph or the rows"],
  ["Enter, click", "focus: over the full width"],
  ["Backspace", "back to what is around"],
  ["Home", "everything again"],
];

const ALONE = "There is only one trace here";

function Compare(props: PanelProps) {
  const { trace, traces } = props;
  if (traces.every((known) => known.id === trace.id)) {
    return (
      <div class="compare">
        <h1>Compare</h1>
        <Empty title={ALONE}>
          <p>Two recordings are compared where both are shown: <code>selftime serve BEFORE AFTER</code>.</p>
        </Empty>
      </div>
    );
  }
  const pair = pairOf(props);
  if (pair === null) return <OtherTrace {...props} />;
  const name = props.params["name"];
  const comparable = COMPARABLE_VIEWS.find((known) => known.view === name);
  return (
    <div class="compare">
      <Tools {...props} pair={pair} comparable={comparable} />
      {comparable === undefined && name !== "overview"
        ? <Difference {...props} pair={pair} />
        : <BothTraces {...props} pair={pair} comparable={comparable} />}
    </div>
  );
}

/**
 * The trace to compare with: from the report, the URL, or another trace of the same run. Of unrelated
 * traces only the reader knows which: null.
 */
function pairOf({ data, trace, traces, params }: PanelProps): Pair | null {
  if (data.pair !== null) return data.pair;
  const others = traces.filter((known) => known.id !== trace.id);
  const asked = others.find((known) => known.id === params["other"]);
  if (asked !== undefined) return { before: trace.id, after: asked.id };
  if (areUnrelated(traces)) return null;
  const near = others.find((known) => known.run === trace.run) ?? others[0];
  return { before: trace.id, after: near?.id ?? trace.id };
}

/** Asks for the trace to compare with. */
function OtherTrace({ trace, traces }: PanelProps) {
  const others = traces.filter((known) => known.id !== trace.id);
  return (
    <div class="compare">
      <h1>Compare</h1>
      <Empty title="Compare with which trace?">
        <p>The traces here are of different programs: choose one of the same.</p>
        <select
          aria-label="After"
          value=""
          onChange={(event) => change({ other: event.currentTarget.value }, { replace: false })}
        >
          <option value="" disabled>Choose a trace</option>
          {others.map((known) => <option key={known.id} value={known.id}>{label(known)}</option>)}
        </select>
      </Empty>
    </div>
  );
}

function BothTraces(props: PanelProps & { pair: Pair; comparable: ComparableView | undefined }) {
  const { data, pair, comparable } = props;
  const { before, after } = pair;
  const ask = () => Promise.all([loadTable(data, before, "steps"), loadTable(data, after, "steps")]);
  const asked = useQuery(ask, `${before} ${after}`);
  return (
    <QueryResult asked={asked} what="both traces">
      {([stepsBefore, stepsAfter]) => {
        const sides = { ...pair, stepsBefore, stepsAfter };
        if (comparable === undefined) return <Overview {...props} sides={sides} />;
        return <Tables {...props} sides={sides} comparable={comparable} steps={[stepsOf(stepsBefore), stepsOf(stepsAfter)]} />;
      }}
    </QueryResult>
  );
}

/** URL parameters to reset when another pair is chosen. */
const AFRESH = { focus: undefined, at: undefined, toggled: undefined };

function Tools(props: PanelProps & { pair: Pair; comparable: ComparableView | undefined }) {
  const { data, params, pair, comparable } = props;
  const { before, after } = pair;
  const swap = () => change({ ...AFRESH, trace: after, other: before }, { replace: false });
  // Choosing the other side's trace swaps the two.
  const choose = (side: keyof Pair) => (id: string) => {
    const next = { ...pair, [side]: id };
    if (next.before === next.after) swap();
    else change({ ...AFRESH, trace: next.before, other: next.after }, { replace: false });
  };
  return (
    <div class="compare-tools">
      <h1>Compare</h1>
      <div class="compare-traces">
        <Side {...props} title="Before" id={before} onChoose={choose("before")} />
        {data.pair === null && <button type="button" title="Swap before and after" onClick={swap}>swap</button>}
        <Side {...props} title="After" id={after} onChoose={choose("after")} />
        <a href={link("timeline", { trace: before, beside: after })} title="The second below the first">timelines</a>
      </div>
      <Choice
        label="Show"
        value={params["name"] ?? "difference"}
        choices={[["difference", "what changed"], ["overview", "overview"], ...COMPARABLE_VIEWS.map(({ view, text }) => [view, text] as const)]}
        onChange={(next) => change({ name: next === "difference" ? undefined : next, by: undefined, measure: undefined, sort: undefined, find: undefined })}
      />
      {comparable !== undefined && comparable.keys.length > 1 && (
        <Choice
          label="by"
          value={params["by"] ?? comparable.keys[0]?.name ?? ""}
          choices={comparable.keys.map((key) => [key.name, key.text] as const)}
          onChange={(by) => change({ by: by === comparable.keys[0]?.name ? undefined : by, measure: undefined })}
        />
      )}
      <Find label="Search names" value={params["find"] ?? ""} onChange={(find) => change({ find: find === "" ? undefined : find })} />
    </div>
  );
}

/** A choice among the traces; fixed in a comparison report. */
function Side(props: PanelProps & { title: string; id: string; onChoose: (id: string) => void }) {
  const { data, traces, title, id } = props;
  const shown = traces.find((known) => known.id === id);
  if (data.pair !== null) return <span class="compare-name"><b>{title}</b> {shown && plain(shown.name)}</span>;
  return (
    <label>
      <b>{title}</b>{" "}
      <select aria-label={title} value={id} onChange={(event) => props.onChoose(event.currentTarget.value)}>
        {traces.map((known) => <option key={known.id} value={known.id}>{label(known)}</option>)}
      </select>
    </label>
  );
}

function label(trace: TraceInfo): string {
  return plain([trace.run, trace.name].filter(Boolean).join(" / "));
}

export const compare: Panel = {
  name: "compare",
  title: "Compare",
  group: "more",
  component: Compare,
  missing: (traces) => (traces.length === 1 ? `${ALONE}.` : ""),
};
