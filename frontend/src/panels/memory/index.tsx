// The panel of memory: curves, holders, and blocks and operators of a time span.

import "./style.css";
import { useEffect, useMemo, useState } from "preact/hooks";
import type { Span } from "../../draw/span.ts";
import { spanOf, wordOf } from "../../draw/span.ts";
import { QueryResult, useQuery } from "../../parts/data/asking.tsx";
import { KEYS } from "../../parts/controls/keys.tsx";
import { MissingData } from "../../parts/text/missing-data.tsx";
import type { FullTable } from "../../parts/data/full-table.ts";
import { loadTable } from "../../parts/data/full-table.ts";
import { change } from "../../route.ts";
import { Grid } from "../grid/grid.tsx";
import type { Panel, PanelProps } from "../panel.ts";
import type { Band } from "./bands.ts";
import type { SharedChart } from "./beside.tsx";
import { Beside } from "./beside.tsx";
import { Chart } from "./chart.tsx";
import type { Curve } from "./curves.ts";
import { curvesOf, extent } from "./curves.ts";
import { versusOf } from "./differences.ts";
import { MemoryFlame } from "./flame.tsx";
import type { Hidden } from "./hiding.ts";
import { hiddenOf, wordOfHidden } from "./hiding.ts";
import { Holders } from "./holders.tsx";
import { Legend } from "./legend.tsx";
import { useBands, useFiner } from "./loading.ts";
import type { Below } from "./stretch.ts";
import { belowOf, brushed, conditions } from "./stretch.ts";
import { Tools } from "./tools.tsx";

KEYS["memory"] = [
  ["drag", "select a time span for the tables"],
  ["click", "select a time: what holds memory then"],
  ["← →", "record by record; with Shift select a time span"],
  ["+ −, Ctrl+wheel", "zoom; 0 or double click shows all"],
  ["p", "the peak"],
  ["Esc", "no stretch"],
];

/** URL parameters of the panel; the others are the grid's. */
const TAKEN = ["show", "of", "stretch", "zoom", "at", "hold", "ends", "stack", "tree", "focus", "freed", "versus", "beside", "hide"];

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
  const finer = useFiner(props, curves, span, limits);
  const stack = useBands(props, curve, span, limits);
  const [lit, setLit] = useState<Band | null>(null);
  const brush = spanOf(params["stretch"]);
  const at = params["at"] === undefined ? null : Number(params["at"]);
  const versus = versusOf(params["versus"]);
  const below = belowOf(params["show"]);
  const hidden = useMemo(() => hiddenOf(params["hide"]), [params["hide"]]);
  const onHide = (next: Hidden) => change({ hide: wordOfHidden(next) });
  useEffect(() => {
    // an address from elsewhere may name a stretch and leave its conditions to us
    if (brush !== null && params["where"] === undefined) change(conditions(params, brush, below, params["ends"]));
  }, []);
  const height = curves.length === 1 ? 240 : curves.length === 2 ? 148 : 112;
  const onSpan = (next: Span) => {
    const isAll = next.from <= limits.from && next.to >= limits.to;
    change({ zoom: isAll ? undefined : wordOf(next) });
  };
  const shared: SharedChart = {
    limits, span, brush, at, height, lit, hidden,
    pin: versus?.kind === "instant" ? versus.time : null,
    onSpan,
    onBrush: (next) => change({ ...brushed(params, next, below), at: undefined }),
    onPoint: (time) => change({ at: String(Math.round(time)) }),
    onLight: setLit,
  };
  const other = params["beside"];
  return (
    <>
      <Tools {...props} brush={brush} at={at} below={below} zoomed={params["zoom"] !== undefined} stack={stack?.by ?? null} />
      <div class="memory-charts">
        {curves.map((one) => (
          <Chart
            {...shared}
            key={one.key}
            curve={finer?.get(one.key) ?? one}
            bands={stack?.bands.get(one.key) ?? null}
            chosen={curves.length > 1 && one === curve}
            onBrush={(next) => change({ ...brushed(params, next, below), at: undefined, of: one.key })}
            onPoint={(time) => change({ at: String(Math.round(time)), of: one.key })}
          />
        ))}
        {stack && (
          <Legend
            bands={stack.bands.get(curve.key) ?? []}
            time={at ?? curve.peak.time}
            when={at === null ? "at the peak" : "at the chosen instant"}
            {...{ lit, hidden, onHide }}
            onLight={setLit}
          />
        )}
        {other && <Beside {...props} other={other} chart={shared} below={below} onHide={onHide} />}
      </div>
      {below === "holders" && <Holders {...props} brush={brush} at={at} />}
      {below === "flame" && <MemoryFlame {...props} brush={brush} at={at} />}
      {below !== "holders" && below !== "flame" && <Tables {...props} brush={brush} below={below} />}
    </>
  );
}

/** The views that tables show, and their titles. */
const TABLES: Readonly<Record<string, readonly [view: string, title: string]>> = {
  lifetimes: ["memory_lifetimes", "Allocated and released"],
  blocks: ["memory_events", "Blocks"],
  operators: ["memory_operators", "Operators"],
};

function Tables(props: PanelProps & { curve: Curve; brush: Span | null; below: Below }) {
  const { curve, brush, below, data } = props;
  const device = curve.type?.toLowerCase() ?? "";
  const stretch = useMemo(
    () => (brush === null || data.inline ? {} : { start: Math.max(Math.floor(brush.from), 0), end: Math.ceil(brush.to) }),
    [brush?.from, brush?.to],
  );
  const options = useMemo(
    () => (data.inline ? {} : below === "blocks" ? { device } : { device, ...stretch }),
    [below, device, stretch],
  );
  const [view, title] = TABLES[below] ?? ["memory_events", "Blocks"];
  return (
    <div class="memory-grid">
      <Grid {...props} view={view} title={title} defaults={options} taken={TAKEN} />
    </div>
  );
}

export const memory: Panel = { name: "memory", title: "Memory", group: "memory", component: Memory, view: "memory_curve" };
