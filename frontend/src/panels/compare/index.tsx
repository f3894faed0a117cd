// Two recordings side by side.

import "./style.css";
import type { TraceInfo } from "../../api.ts";
import { Answered, Empty, useAsked } from "../../parts/asking.tsx";
import { Choice } from "../../parts/choice.tsx";
import { Find } from "../../parts/find.tsx";
import { plain } from "../../parts/plain.ts";
import { whole } from "../../parts/whole.ts";
import { change } from "../../route.ts";
import type { Panel, PanelProps } from "../panel.ts";
import { Headline } from "./headline.tsx";
import { LENSES } from "./lenses.ts";
import { stepsOf } from "./merging.ts";
import type { Sides } from "./sides.ts";
import { Parts, Overview, Tables } from "./tables.tsx";

function Compare(props: PanelProps) {
  const { trace, traces, params } = props;
  const others = traces.filter((known) => known.id !== trace.id);
  if (others.length === 0) {
    return (
      <div class="compare">
        <h1>Compare</h1>
        <Empty title="There is only one trace here">
          <p>Two recordings are compared where both are shown: <code>selftime serve BEFORE AFTER</code>.</p>
        </Empty>
      </div>
    );
  }
  const other = others.find((known) => known.id === params["other"]) ?? nearest(trace, others);
  return <Both {...props} others={others} other={other} />;
}

/** Of the other traces the one that most likely belongs beside this: of its run, or the next. */
function nearest(trace: TraceInfo, others: readonly TraceInfo[]): TraceInfo {
  return others.find((known) => known.run === trace.run) ?? (others[0] as TraceInfo);
}

function Both(props: PanelProps & { others: TraceInfo[]; other: TraceInfo }) {
  const { data, trace, other } = props;
  const ask = () => Promise.all([whole(data, trace.id, "steps"), whole(data, other.id, "steps")]);
  const asked = useAsked(ask, `${trace.id} ${other.id}`);
  return (
    <div class="compare">
      <Tools {...props} />
      <Answered asked={asked} what="both traces">
        {([stepsA, stepsB]) => <Shown {...props} sides={{ a: trace, b: other, stepsA, stepsB }} />}
      </Answered>
    </div>
  );
}

function Shown(props: PanelProps & { sides: Sides }) {
  const { sides, params } = props;
  const [a, b] = [stepsOf(sides.stepsA), stepsOf(sides.stepsB)];
  const name = params["name"] ?? "steps";
  const lens = LENSES.find((known) => known.view === name);
  return (
    <>
      <Headline a={sides.stepsA} b={sides.stepsB} />
      {name === "overview" && <Overview {...props} />}
      {lens !== undefined && <Tables {...props} lens={lens} steps={[a, b]} />}
      {name !== "overview" && lens === undefined && <Parts {...props} />}
    </>
  );
}

function Tools(props: PanelProps & { others: TraceInfo[]; other: TraceInfo }) {
  const { trace, others, other, params } = props;
  const name = params["name"] ?? "steps";
  const lens = LENSES.find((known) => known.view === name);
  const swap = () => change({ trace: other.id, other: trace.id }, { replace: false });
  return (
    <div class="compare-tools">
      <h1>Compare</h1>
      <p class="compare-traces">
        <b>A</b> <span class="compare-name" title={plain(trace.name)}>{label(trace)}</span>
        <button type="button" title="A becomes B" onClick={swap}>swap</button>
        <b>B</b>
        <select aria-label="The other trace" value={other.id} onChange={(event) => change({ other: event.currentTarget.value })}>
          {others.map((known) => <option key={known.id} value={known.id}>{label(known)}</option>)}
        </select>
      </p>
      <Find label="Search" value={params["find"] ?? ""} onChange={(find) => change({ find: find === "" ? undefined : find })} />
      <Choice
        label="What"
        value={name}
        choices={[["steps", "parts of a step"], ["overview", "overview"], ...LENSES.map(({ view, text }) => [view, text] as const)]}
        onChange={(next) => change({ name: next === "steps" ? undefined : next, by: undefined, measure: undefined, sort: undefined, find: undefined })}
      />
      {lens !== undefined && lens.keys.length > 1 && (
        <Choice
          label="by"
          value={params["by"] ?? lens.keys[0]?.name ?? ""}
          choices={lens.keys.map((key) => [key.name, key.text] as const)}
          onChange={(by) => change({ by: by === lens.keys[0]?.name ? undefined : by, measure: undefined })}
        />
      )}
    </div>
  );
}

function label(trace: TraceInfo): string {
  return plain([trace.run, trace.name].filter(Boolean).join(" / "));
}

export const compare: Panel = { name: "compare", title: "Compare", group: "more", component: Compare };
