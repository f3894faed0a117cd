// The recording at a glance.

import "./style.css";
import type { Panel, PanelProps } from "../panel.ts";
import { QueryResult, Empty, useQuery } from "../../parts/data/asking.tsx";
import { plain } from "../../parts/text/plain.ts";
import { TraceText } from "../../parts/text/trace-text.tsx";
import { labelsOf } from "../../parts/data/labels.ts";
import { StepBars, stepLink } from "../../parts/steps/stepbars.tsx";
import { STEP_COLUMNS, uncountedSteps } from "../../parts/steps/stepspan.ts";
import { loadTable, type FullTable } from "../../parts/data/full-table.ts";
import { link } from "../../route.ts";
import { text } from "../../units.ts";
import { Devices, Host } from "../../parts/figures/devices.tsx";
import { Execution } from "./execution.tsx";
import { figures, inSection, stepFigures, type Figure } from "../../parts/figures/figures.ts";
import { IdleCauses } from "./idle.tsx";
import { Metric } from "../../parts/figures/metric.tsx";
import { Occupation } from "./occupation.tsx";
import { HealthChecks } from "./health.tsx";

export const overview: Panel = {
  name: "overview",
  title: "Overview",
  group: "answer",
  component: OverviewPanel,
};

export function OverviewPanel(props: PanelProps) {
  const { data, trace, views } = props;
  const load = async () => figures(await loadTable(data, trace.id, "overview"), labelsOf(views.get("overview"), "metric"));
  const asked = useQuery(load, trace.id);
  const steps = useQuery(() => loadTable(data, trace.id, "steps", {}, { columns: STEP_COLUMNS }), trace.id);
  if (asked.state === "failed") return <QueryResult asked={asked}>{() => null}</QueryResult>;
  return (
    <div class="overview">
      <h1>Overview</h1>
      <section>
        <QueryResult asked={asked} what="the trace">{(found) => <BoundBy found={found} />}</QueryResult>
        <QueryResult asked={steps} what="the steps">{(table) => <Breakdown steps={table} />}</QueryResult>
      </section>
      <QueryResult asked={asked}>{(found) => <Glance {...props} found={found} />}</QueryResult>
      <QueryResult asked={asked}>{(found) => <Causes {...props} hasDevice={inSection(found, "device").length > 0} />}</QueryResult>
      <section>
        <h2>Can the numbers be trusted?</h2>
        <HealthChecks data={data} trace={trace} />
      </section>
    </div>
  );
}

/** What limits the step, as a name and a sentence. */
function BoundBy(props: { found: readonly Figure[] }) {
  const bound = inSection(props.found, "steps").find((figure) => figure.metric === "bound by");
  if (bound === undefined) return null;
  return (
    <p class="overview-regime">
      <b>{bound.text === null ? "What limits the step is unknown" : `Bound by ${plain(bound.text)}`}</b>{" "}
      <span class="muted"><TraceText text={bound.definition} /></span>
    </p>
  );
}

function Glance(props: PanelProps & { found: readonly Figure[] }) {
  const { found } = props;
  const hasDevice = inSection(found, "device").length > 0;
  if (found.length === 0) {
    return <Empty title="Nothing to summarise" text="The recording holds no slice of host or device." />;
  }
  return (
    <div class="overview-columns">
      <section>
        {inSection(found, "steps").length > 0 && <><h2>The step</h2><Step found={found} /></>}
        <h2>Time by category</h2>
        <Execution figures={inSection(found, "execution")} />
      </section>
      <section>
        {hasDevice && <><h2>Device</h2><Devices figures={found} /></>}
        {inSection(found, "host").length > 0 && <><h2>Host</h2><Host figures={found} /></>}
        <h2>Recording</h2>
        <Plain figures={inSection(found, "trace")} />
      </section>
    </div>
  );
}

function Step(props: { found: readonly Figure[] }) {
  const { times, others } = stepFigures(props.found);
  const known = others.filter((figure) => figure.metric !== "bound by" && figure.text !== null);
  return (
    <>
      {times.length > 0 && (
        <table class="figures">
          <thead>
            <tr>
              <td /><th scope="col" class="number">Median</th>
              <th scope="col" class="number">± deviation</th><th scope="col" class="number">95th percentile</th>
            </tr>
          </thead>
          <tbody>
            {times.map(({ name, median, deviation, p95 }) => (
              <tr key={name} title={median?.definition}>
                <th scope="row"><a href={link("steps", { sort: `-${name.replaceAll(" ", "_").replace("step_", "")}` })}>{name}</a></th>
                <td class="number">{text(median?.value ?? null, "ns")}</td>
                <td class="number muted">{text(deviation?.value ?? null, "ns")}</td>
                <td class="number">{text(p95?.value ?? null, "ns")}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      <Plain figures={known} />
    </>
  );
}

function Plain(props: { figures: readonly Figure[] }) {
  return (
    <table class="figures">
      <tbody>
        {props.figures.map((figure) => (
          <tr key={figure.metric} title={plain(figure.definition)}>
            <th scope="row"><Metric figure={figure} /></th>
            <td class="number">{plain(figure.text ?? "-")}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Breakdown(props: { steps: FullTable }) {
  const { steps } = props;
  if (steps.rows === 0) return <p class="muted">No step was found.</p>;
  const others = uncountedSteps(steps);
  if (steps.columns["source"]?.[0] === "window") {
    return <p class="muted">No steps are marked: the whole recording counts as one.</p>;
  }
  return (
    <>
      <StepBars steps={steps} height={steps.rows === 1 ? 160 : 240} />
      {others.length > 0 && (
        <ul class="uncounted">
          {others.slice(0, 8).map(({ row, step, note }) => (
            <li key={row}>
              <a href={stepLink(steps, row) ?? link("steps")}>step {step}</a> does not count: {note}
            </li>
          ))}
          {others.length > 8 && <li><a href={link("steps")}>and {others.length - 8} more</a></li>}
        </ul>
      )}
    </>
  );
}

function Causes(props: PanelProps & { hasDevice: boolean }) {
  return (
    <div class="overview-columns roomy">
      <section>
        <h2>{props.hasDevice ? "What each device did" : "What the host did"}</h2>
        <Occupation data={props.data} trace={props.trace} />
      </section>
      {props.hasDevice && (
        <section>
          <h2>Where the idle time goes</h2>
          <IdleCauses data={props.data} trace={props.trace} views={props.views} />
        </section>
      )}
    </div>
  );
}
