// The panel of memory: curves, holders, and blocks and operators of a time span.

import "./style.css";
import { useEffect, useMemo } from "preact/hooks";
import type { Filter } from "../../data/api.ts";
import { spanOf, wordOf, type Span } from "../../draw/span.ts";
import { QueryResult, useQuery } from "../../parts/data/asking.tsx";
import { Choice } from "../../parts/controls/choice.tsx";
import { KEYS } from "../../parts/controls/keys.tsx";
import { MissingData } from "../../parts/text/missing-data.tsx";
import { plain } from "../../parts/text/plain.ts";
import type { FullTable } from "../../parts/data/full-table.ts";
import { loadTable } from "../../parts/data/full-table.ts";
import { change } from "../../route.ts";
import { timeText } from "../../units.ts";
import { Grid } from "../grid/grid.tsx";
import type { Panel, PanelProps } from "../panel.ts";
import { Chart } from "./chart.tsx";
import type { Curve } from "./curves.ts";
import { curvesOf, extent } from "./curves.ts";
import { Holders } from "./holders.tsx";

KEYS["memory"] = [
  ["drag", "select a time span for the tables"],
  ["click", "select a time: what holds memory then"],
  ["← →", "record by record; with Shift select a time span"],
  ["+ −, Ctrl+wheel", "zoom; 0 or double click shows all"],
  ["p", "the peak"],
  ["Esc", "no stretch"],
];

type Below = "holders" | "blocks" | "operators";
/** URL parameters of the panel; the others are the grid's. */
const TAKEN = ["show", "of", "stretch", "zoom", "at", "hold", "ends"];
/** Points of a zoomed span up to which exact records are loaded. */
const POINTS = 8_000;

function Memory(props: PanelProps) {
  const { data, trace } = props;
  const asked = useQuery(() => loadTable(data, trace.id, "memory_curve"), trace.id);
  return (
    <div class="memory">
      <QueryResult asked={asked} what="the curve">{(table) => <Curves {...props} table={table} />}</QueryResult>
    </div>
  );
}

function Curves(props: PanelProps & { table: FullTable }) {
  const { table, params } = props;
  const curves = useMemo(() => curvesOf(table), [table]);
  const curve = curves.find((known) => known.key === params["of"]) ?? curves[0];
  if (curve === undefined) {
    return <><h1>Memory</h1><MissingData title="No memory was recorded" lacks={table.lacks} /></>;
  }
  return <Shown {...props} curves={curves} curve={curve} />;
}

function Shown(props: PanelProps & { curves: Curve[]; curve: Curve }) {
  const { params, curves, curve } = props;
  const limits = useMemo(() => extent(curves), [curves]);
  const span = spanOf(params["zoom"]) ?? limits;
  const finer = useFiner(props, span, limits);
  const brush = spanOf(params["stretch"]);
  const at = params["at"] === undefined ? null : Number(params["at"]);
  const below = belowOf(params["show"]);
  useEffect(() => {
    // an address from elsewhere may name a stretch and leave its conditions to us
    if (brush !== null && params["where"] === undefined) change(conditions(params, brush, below, params["ends"]));
  }, []);
  const height = curves.length === 1 ? 200 : curves.length === 2 ? 132 : 104;
  const onSpan = (next: Span) => {
    const isAll = next.from <= limits.from && next.to >= limits.to;
    change({ zoom: isAll ? undefined : wordOf(next) });
  };
  return (
    <>
      <Tools {...props} brush={brush} at={at} below={below} zoomed={params["zoom"] !== undefined} />
      <div class="memory-charts">
        {curves.map((one) => (
          <Chart
            key={one.key}
            curve={finer?.get(one.key) ?? one}
            limits={limits}
            span={span}
            brush={brush}
            at={at}
            chosen={curves.length > 1 && one === curve}
            height={height}
            onSpan={onSpan}
            onBrush={(next) => change({ ...brushed(params, next, below), at: undefined, of: one.key })}
            onPoint={(time) => change({ at: String(Math.round(time)), of: one.key })}
          />
        ))}
      </div>
      {below === "holders"
        ? <Holders {...props} brush={brush} at={at} />
        : <Tables {...props} brush={brush} below={below} />}
    </>
  );
}

function belowOf(word: string | undefined): Below {
  return word === "blocks" || word === "operators" ? word : "holders";
}

/** The exact curve of a zoomed span, if it has few enough records. */
function useFiner(props: PanelProps, span: Span, limits: Span): ReadonlyMap<string, Curve> | null {
  const { data, trace } = props;
  const wanted = !data.inline && span.to - span.from < 0.5 * (limits.to - limits.from);
  const where: Filter[] = [
    { column: "time", op: "from", value: String(Math.floor(span.from - (span.to - span.from))) },
    { column: "time", op: "to", value: String(Math.ceil(span.to + (span.to - span.from))) },
  ];
  const ask = async () => {
    if (!wanted) return null;
    const table = await loadTable(data, trace.id, "memory_curve", { points: 0 }, { where }, POINTS);
    if (table.total > table.rows) return null;
    return new Map(curvesOf(table).map((curve) => [curve.key, curve]));
  };
  const asked = useQuery(ask, `${trace.id} ${wanted ? wordOf(span) : ""}`);
  if (!wanted || asked.state !== "here" || asked.stale || asked.value === null) return null;
  return asked.value;
}

/** URL parameters of a selected time span, with filters of the table of blocks. */
function brushed(params: PanelProps["params"], brush: Span | null, below: Below): Record<string, string | undefined> {
  return { stretch: wordOf(brush), ...conditions(params, brush, below, params["ends"]) };
}

function conditions(params: PanelProps["params"], brush: Span | null, below: Below, ends: string | undefined): Record<string, string | undefined> {
  if (below !== "blocks") return {};
  let kept: Filter[] = [];
  try {
    kept = (JSON.parse(params["where"] ?? "[]") as Filter[]).filter((one) => one.column !== "allocated" && one.column !== "released");
  } catch {
    // written by hand, and not to be read: the stretch's own conditions stand alone
  }
  const column = ends === "released" ? "released" : "allocated";
  const own: Filter[] = brush === null ? [] : [
    { column, op: "from", value: String(Math.floor(brush.from)) },
    { column, op: "to", value: String(Math.ceil(brush.to)) },
  ];
  const where = [...kept, ...own];
  return { where: where.length === 0 ? undefined : JSON.stringify(where), row: undefined };
}

/** Of the grid below; another table has other columns. */
const AFRESH = { sort: undefined, find: undefined, where: undefined, cols: undefined, widths: undefined, row: undefined };

function Tools(props: PanelProps & { brush: Span | null; at: number | null; below: Below; zoomed: boolean; curve: Curve; curves: Curve[] }) {
  const { params, brush, at, below, zoomed, curve, curves } = props;
  const show = (next: Below) =>
    change({ ...AFRESH, show: next === "holders" ? undefined : next, ...conditions({}, brush, next, params["ends"]) });
  return (
    <div class="memory-tools">
      <h1>Memory</h1>
      <Choice
        label="Below"
        value={below}
        choices={[
          ["holders", "who holds it", "at the peak, or at the chosen instant"],
          ["blocks", "blocks", "each block with its allocation and its release"],
          ["operators", "operators", "what operators allocated and kept"],
        ]}
        onChange={show}
      />
      {curves.length > 1 && (
        <Choice
          label="of"
          value={curve.key}
          choices={curves.map((one) => [one.key, plain(one.title)] as const)}
          onChange={(of) => change({ of })}
        />
      )}
      {below === "blocks" && brush !== null && (
        <Choice
          label="in the stretch"
          value={params["ends"] === "released" ? "released" : "allocated"}
          choices={[["allocated", "allocated"], ["released", "released"]]}
          onChange={(ends) => change({ ends: ends === "released" ? ends : undefined, ...conditions(params, brush, below, ends) })}
        />
      )}
      <span class="memory-moves">
        {brush !== null && (
          <>
            <button type="button" onClick={() => change({ zoom: wordOf(brush) })}>zoom to the stretch</button>
            <button type="button" title="Esc" onClick={() => change(brushed(params, null, below))}>
              {timeText(brush.to - brush.from)} chosen ×
            </button>
          </>
        )}
        {at !== null && <button type="button" onClick={() => change({ at: undefined })}>at {timeText(at)} ×</button>}
        {zoomed && <button type="button" onClick={() => change({ zoom: undefined })}>show all</button>}
      </span>
    </div>
  );
}

function Tables(props: PanelProps & { curve: Curve; brush: Span | null; below: Below }) {
  const { curve, brush, below, data } = props;
  const device = curve.type?.toLowerCase() ?? "";
  const stretch = useMemo(
    () => (brush === null || data.inline ? {} : { start: Math.max(Math.floor(brush.from), 0), end: Math.ceil(brush.to) }),
    [brush?.from, brush?.to],
  );
  const options = useMemo(
    () => (data.inline ? {} : below === "operators" ? { device, ...stretch } : { device }),
    [below, device, stretch],
  );
  const view = below === "operators" ? "memory_operators" : "memory_events";
  return (
    <div class="memory-grid">
      <Grid {...props} view={view} title={below === "operators" ? "Operators" : "Blocks"} defaults={options} taken={TAKEN} />
    </div>
  );
}

export const memory: Panel = { name: "memory", title: "Memory", group: "memory", component: Memory, view: "memory_curve" };
