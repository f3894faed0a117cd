// The whole run: what its wall time was spent on, every step of it, and the slow ones.

import "./style.css";
import { useMemo } from "preact/hooks";
import type { Panel, PanelProps } from "../panel.ts";
import { Empty, QueryResult, useQuery } from "../../parts/data/asking.tsx";
import { Stack } from "../../parts/charts/stack.tsx";
import { KEYS } from "../../parts/controls/keys.tsx";
import { labelsOf } from "../../parts/data/labels.ts";
import type { Labels } from "../../parts/data/labels.ts";
import { plain } from "../../parts/text/plain.ts";
import type { FullTable } from "../../parts/data/full-table.ts";
import { loadTable, number, texts, textAt } from "../../parts/data/full-table.ts";
import { link } from "../../route.ts";
import { countedText, text } from "../../units.ts";
import { coloursOf } from "./curve.ts";
import { causesOf, loopsOf, partsOf } from "./parts.ts";
import { StepsOfRun } from "./steps.tsx";
import { CausesTable, KindsTable, PartsTable, SlowestTable } from "./tables.tsx";

KEYS["run"] = [
  ["← →", "from step to step, as the picture has them"],
  ["n, N", "the next slow step, the one before"],
  ["Enter", "the recorded step in the timeline"],
  ["drag", "zoom in; 0 or double click shows all"],
];

export const run: Panel = { name: "run", title: "Run", group: "answer", component: RunPanel };

/** The most slow steps that are loaded; the counts are of all. */
const MOST_SLOW = 2_000;

interface Loaded {
  summary: FullTable;
  parts: FullTable;
  kinds: FullTable;
  slow: FullTable;
}

function RunPanel(props: PanelProps) {
  const { data, trace } = props;
  const asked = useQuery<Loaded>(async () => {
    const [summary, parts, kinds, slow] = await Promise.all([
      loadTable(data, trace.id, "run_summary"),
      loadTable(data, trace.id, "run"),
      loadTable(data, trace.id, "run_kinds"),
      loadTable(data, trace.id, "run_steps", { slow: true }, {}, MOST_SLOW),
    ]);
    return { summary, parts, kinds, slow };
  }, trace.id);
  return (
    <div class="run">
      <h1>Run</h1>
      <QueryResult asked={asked} what="the ledger of the run">
        {(loaded) => (loaded.summary.rows === 0 ? <NoLedger /> : <Shown {...props} loaded={loaded} />)}
      </QueryResult>
    </div>
  );
}

function NoLedger() {
  return (
    <Empty title="The run around this recording is not known">
      <p>
        <code>selftime run</code> keeps a ledger of the whole run beside its recording, in a file that ends
        in <code>.run.jsonl</code>. This trace has none, or was moved without it.
      </p>
    </Empty>
  );
}

function Shown(props: PanelProps & { loaded: Loaded }) {
  const { summary, parts: table, kinds, slow } = props.loaded;
  const parts = useMemo(
    () => partsOf(table, labelsOf(props.views.get("run"), "part"), loopsOf(kinds)),
    [table, kinds, props.views],
  );
  const colours = useMemo(() => coloursOf(texts(kinds, "kind")), [kinds]);
  const wall = figure(summary, "wall time") ?? 0;
  return (
    <>
      <Heading summary={summary} />
      <section aria-label="Parts of the run">
        <Stack
          label="Wall time by part"
          height={26}
          legend={false}
          parts={parts.map(({ label, colour, time }) => ({ label, colour, size: time, text: text(time, "ns") }))}
        />
        <PartsTable parts={parts} wall={wall} />
        <p class="run-more muted">
          The parts add up to the wall time. <a href={link("view", { name: "run" })}>All rows</a>
        </p>
      </section>
      <section aria-label="Steps of the run">
        <h2>All steps</h2>
        {kinds.rows === 0
          ? <p class="muted">No step was counted in this run.</p>
          : <><StepsOfRun {...props} colours={colours} /><KindsTable kinds={kinds} colours={colours} /></>}
        {kinds.rows > 0 && <p class="run-more muted"><a href={link("run_steps")}>Every step as a table</a></p>}
      </section>
      {slow.total > 0 && <SlowSteps slow={slow} summary={summary} labels={labelsOf(props.views.get("run_steps"), "cause")} />}
    </>
  );
}

function SlowSteps(props: { slow: FullTable; summary: FullTable; labels: Labels }) {
  const { slow, summary, labels } = props;
  const causes = useMemo(() => causesOf(slow), [slow]);
  return (
    <section aria-label="Slow steps">
      <h2>
        Slow steps{" "}
        <span class="muted">
          {text(slow.total, "count")}, which cost {said(summary, "slow steps' excess")}
        </span>
      </h2>
      <div class="run-columns">
        <div><h3>By cause and line</h3><CausesTable causes={causes} labels={labels} /></div>
        <div class="run-slowest">
          <h3>The slowest</h3>
          <SlowestTable slow={slow} labels={labels} />
          <p class="run-more muted"><a href={link("run_steps", { slow: "true" })}>All slow steps</a></p>
        </div>
      </div>
      {slow.rows < slow.total && <p class="muted">Causes are of the {text(slow.rows, "count")} slowest.</p>}
    </section>
  );
}

/** The command, how long it ran and how that ended. */
function Heading(props: { summary: FullTable }) {
  const { summary } = props;
  const [command, ended, rank, process] = ["command", "ended", "rank", "process"].map((metric) => said(summary, metric));
  const steps = figure(summary, "steps") ?? 0;
  const recorded = figure(summary, "recorded steps") ?? 0;
  return (
    <div class="run-heading">
      <p class="run-wall">
        <strong>{said(summary, "wall time")}</strong>
        {command != null && <code>{plain(command)}</code>}
        {process != null && <span class="muted">process {process}{rank != null && `, rank ${rank}`}</span>}
      </p>
      <p>
        {countedText(steps, "step")}
        {recorded > 0 && <>; the {text(recorded, "count")} recorded stand for {said(summary, "covered")} of the run</>}.
      </p>
      {ended != null && ended !== "ended" && <p class="run-ended" role="note">{capital(plain(ended))}.</p>}
    </div>
  );
}

function capital(sentence: string): string {
  return sentence.charAt(0).toUpperCase() + sentence.slice(1);
}

function rowOf(summary: FullTable, metric: string): number {
  return texts(summary, "metric").indexOf(metric);
}

function figure(summary: FullTable, metric: string): number | null {
  return number(summary, "value", rowOf(summary, metric));
}

function said(summary: FullTable, metric: string): string | null {
  return textAt(summary, "text", rowOf(summary, metric));
}
