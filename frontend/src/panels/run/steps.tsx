// The chart of all steps with its legend, its scale and its zoom.

import { useMemo } from "preact/hooks";
import { spanOf, wordOf } from "../../draw/span.ts";
import { Swatch } from "../../parts/charts/stack.tsx";
import { Choice } from "../../parts/controls/choice.tsx";
import { QueryResult, useQuery } from "../../parts/data/asking.tsx";
import { timelineLinkParameters } from "../../parts/data/timeline-link.ts";
import { loadTable, type FullTable } from "../../parts/data/full-table.ts";
import { labelOfValue, labelsOf } from "../../parts/data/labels.ts";
import type { Labels } from "../../parts/data/labels.ts";
import { plain } from "../../parts/text/plain.ts";
import { change, go } from "../../route.ts";
import { text, timeText } from "../../units.ts";
import type { PanelProps } from "../panel.ts";
import { Chart } from "./chart.tsx";
import { extent, OTHER_KINDS, stepsOf, type ScaleKind, type Steps } from "./curve.ts";
import { placeText } from "../../parts/text/place.ts";

interface StepsProps extends PanelProps {
  colours: ReadonlyMap<string, string>;
}

export function StepsOfRun(props: StepsProps) {
  const { data, trace, params } = props;
  const zoom = spanOf(params["zoom"]);
  // a report has the whole run at one resolution
  const wanted = zoom === null || data.inline ? {} : { start: Math.max(Math.floor(zoom.from), 0), end: Math.ceil(zoom.to) };
  const asked = useQuery(() => loadTable(data, trace.id, "run_curve", wanted), `${trace.id} ${JSON.stringify(wanted)}`);
  return (
    <QueryResult asked={asked} what="the steps of the run">
      {(table) => <Picture {...props} table={table} />}
    </QueryResult>
  );
}

function Picture(props: StepsProps & { table: FullTable }) {
  const { table, params, colours, views } = props;
  const labels = labelsOf(views.get("run_curve"), "cause");
  const steps = useMemo(() => stepsOf(table), [table]);
  const word = params["zoom"];
  const span = useMemo(() => spanOf(word) ?? extent(steps), [word, steps]);
  const scale: ScaleKind = params["scale"] === "linear" ? "linear" : "logarithmic";
  return (
    <>
      <div class="run-tools">
        <Legend steps={steps} colours={colours} />
        <Choice
          label="scale"
          value={scale}
          choices={[["logarithmic", "logarithmic"], ["linear", "linear"]]}
          onChange={(next) => change({ scale: next === "linear" ? next : undefined })}
        />
        {word !== undefined && <button type="button" onClick={() => change({ zoom: undefined })}>show all</button>}
      </div>
      <Chart
        steps={steps}
        span={span}
        scale={scale}
        colours={colours}
        height={280}
        tip={(one) => <StepTip steps={one} colour={colours.get(one.kind) ?? OTHER_KINDS} labels={labels} />}
        onPick={(one) => {
          if (one.traceStart !== null) go("timeline", timelineLinkParameters(one.traceStart, one.longest));
        }}
        onSpan={(next) => change({ zoom: wordOf(next) })}
      />
    </>
  );
}

function Legend(props: { steps: readonly Steps[]; colours: ReadonlyMap<string, string> }) {
  const { steps, colours } = props;
  const kinds = [...colours].filter(([, colour]) => colour !== OTHER_KINDS);
  return (
    <ul class="stack-legend run-legend">
      {kinds.map(([kind, colour]) => <li key={kind} title={plain(kind)}><Swatch colour={colour} /><span>{plain(kind)}</span></li>)}
      {kinds.length < colours.size && <li><Swatch colour={OTHER_KINDS} />other kinds</li>}
      {steps.some((one) => one.slow) && <li><i class="run-mark slow" aria-hidden="true" />slow</li>}
      {steps.some((one) => one.recorded) && <li><i class="run-mark recorded" aria-hidden="true" />recorded</li>}
    </ul>
  );
}

function StepTip(props: { steps: Steps; colour: string; labels: Labels }) {
  const { steps, colour, labels } = props;
  const isOne = steps.count === 1;
  return (
    <>
      <strong><Swatch colour={colour} />{plain(steps.kind)}{steps.slow && ", slow"}</strong>
      {!isOne && (
        <>
          <Row name={`${text(steps.count, "count")} steps`} value={`${timeText(steps.shortest)} to ${timeText(steps.longest)}`} />
          <Row name="their median" value={timeText(steps.median)} />
        </>
      )}
      <Row name={isOne ? `step ${text(steps.step, "id")}` : `the longest, step ${text(steps.step, "id")}`} value={timeText(steps.longest)} />
      <Row name="at" value={timeText(steps.start)} />
      {steps.dataWait > 0 && <Row name="waited for data" value={timeText(steps.dataWait)} />}
      {steps.cause !== null && <Row name="most of it" value={labelOfValue(labels, steps.cause).text} />}
      {steps.place !== null && <Row name="line" value={plain(placeText(nameOf(steps.place.file), steps.place.line))} />}
      {steps.recorded && <em>{steps.traceStart === null ? "recorded, but not in this trace" : "recorded: click to see it in the timeline"}</em>}
    </>
  );
}

function nameOf(file: string): string {
  return file.slice(Math.max(file.lastIndexOf("/"), file.lastIndexOf("\\")) + 1);
}

function Row(props: { name: string; value: string }) {
  return <><span>{props.name}</span><span class="number">{props.value}</span></>;
}
