// The critical path of a step: as a band over threads and streams, and what it is spent on.

import "./style.css";
import { useMemo } from "preact/hooks";
import { Choice } from "../../parts/controls/choice.tsx";
import { KEYS } from "../../parts/controls/keys.tsx";
import { QueryResult, useQuery } from "../../parts/data/asking.tsx";
import type { FullTable } from "../../parts/data/full-table.ts";
import { loadTable } from "../../parts/data/full-table.ts";
import { labelsOf } from "../../parts/data/labels.ts";
import { STEP_COLUMNS } from "../../parts/steps/stepspan.ts";
import { MissingData } from "../../parts/text/missing-data.tsx";
import { change } from "../../route.ts";
import { timeText } from "../../units.ts";
import { Grid } from "../grid/grid.tsx";
import type { Panel, PanelProps } from "../panel.ts";
import { bandOf } from "./band.ts";
import { PathChart } from "./chart.tsx";
import { Details, segmentWords } from "./details.tsx";
import { Legend, StepChoice } from "./tools.tsx";

KEYS["critical_path"] = [
  ["← →", "on the chart: along the path"],
  ["Backspace", "on the chart: the whole step"],
  ["Enter, s, f", "in the table: open a row; sort, filter a column"],
];

const TYPICAL = "typical";
/** Options of both tables unless the address has others. */
const DEFAULTS = { step: TYPICAL };
/** Words of the address that are no options of the tables. */
const TAKEN = ["from", "to", "at", "table"];

interface Answer {
  band: FullTable;
  kinds: FullTable;
  steps: FullTable;
}

function CriticalPath(props: PanelProps) {
  const { data, trace, params } = props;
  const step = params["step"] ?? TYPICAL;
  const span = data.inline ? null : spanOf(params);
  const ask = async (): Promise<Answer> => {
    const cut = span === null ? {} : { start: span[0], end: span[1] };
    const asked = step === TYPICAL ? {} : { step };
    const [band, kinds, steps] = await Promise.all([
      loadTable(data, trace.id, "critical_path_band", { ...asked, ...cut }),
      loadTable(data, trace.id, "critical_path", { by: "kind", step }),
      loadTable(data, trace.id, "steps", {}, { columns: STEP_COLUMNS }),
    ]);
    return { band, kinds, steps };
  };
  const asked = useQuery(ask, JSON.stringify([trace.id, step, span]));
  return (
    <div class="critical-path">
      <QueryResult asked={asked} what="the critical path">{(answer) => <Shown {...props} {...answer} step={step} />}</QueryResult>
    </div>
  );
}

function spanOf(params: PanelProps["params"]): readonly [number, number] | null {
  const [from, to] = [Number(params["from"]), Number(params["to"])];
  return Number.isSafeInteger(from) && Number.isSafeInteger(to) && from >= 0 && to > from ? [from, to] : null;
}

function Shown(props: PanelProps & Answer & { step: string }) {
  const { steps, kinds, step, data, band } = props;
  return (
    <>
      <header class="path-tools">
        <h1>Critical path</h1>
        <StepChoice steps={steps} step={step} isReport={data.inline} />
        {band.rows > 0 && <Legend kinds={kinds} labels={labelsOf(props.views.get("critical_path_band"), "kind")} />}
      </header>
      {band.rows === 0
        ? <MissingData title="There is no critical path in this recording" lacks={kinds.lacks}><p>Nothing was recorded that one piece of work could have waited for.</p></MissingData>
        : <><Picture {...props} /><Tables {...props} /></>}
    </>
  );
}

function Picture(props: PanelProps & Answer) {
  const { params, views, kinds } = props;
  const band = useMemo(() => bandOf(props.band), [props.band]);
  const [from, to] = spanOf(params) ?? [band.start, band.end];
  const spec = views.get("critical_path_band");
  const labels = useMemo(() => ({ kinds: labelsOf(spec, "kind"), links: labelsOf(spec, "link") }), [spec]);
  const whole = kinds.totals["time"] ?? 0;
  const at = segmentOf(params["at"], band.segments.map(({ start, lane }) => `${start}.${lane}`));
  const choose = (next: number) => {
    const segment = band.segments[next];
    change({ at: segment === undefined ? undefined : `${segment.start}.${segment.lane}` });
  };
  const zoom = (span: readonly [number, number] | null) => change(
    { from: span === null ? undefined : String(span[0]), to: span === null ? undefined : String(span[1]), at: undefined },
    { replace: false },
  );
  return (
    <section aria-label="The path in order of time">
      <PathChart
        band={band}
        origin={band.start}
        from={from}
        to={to}
        chosen={at}
        describe={(segment) => segmentWords(band, segment, labels.kinds)}
        onChoose={choose}
        onSpan={zoom}
      />
      <div class="path-below">
        <Details band={band} at={at} whole={whole} labels={labels} views={views} />
        {spanOf(params) !== null && <button type="button" onClick={() => zoom(null)}>show all {timeText(whole)}</button>}
      </div>
    </section>
  );
}

/** The segment of a word of the address: its begin and its lane. */
function segmentOf(word: string | undefined, known: readonly string[]): number {
  return word === undefined ? -1 : known.indexOf(word);
}

function Tables(props: PanelProps) {
  const table = props.params["table"] === "off" ? "off" : "on";
  const view = table === "off" ? "off_path" : "critical_path";
  return (
    <div class="path-tables">
      <Choice
        label="Table"
        value={table}
        choices={[
          ["on", "on the path", "what the path is spent on: making it faster makes the step faster"],
          ["off", "off the path", "device work beside the path: it could take longer without slowing the step"],
        ]}
        onChange={(chosen) => change({ table: chosen === "on" ? undefined : chosen, sort: undefined, where: undefined, row: undefined, by: undefined, cols: undefined, find: undefined })}
      />
      <div class="path-grid"><Grid key={view} {...props} view={view} title="" defaults={DEFAULTS} taken={TAKEN} /></div>
    </div>
  );
}

export const criticalPath: Panel = { name: "critical_path", title: "Critical path", group: "device", component: CriticalPath };
