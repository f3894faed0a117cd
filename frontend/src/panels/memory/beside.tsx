// The memory of another recording beside the trace's own: a snapshot of the allocator and a trace of
// one program, by one clock where both recorded at one time.

import { useMemo } from "preact/hooks";
import type { Data } from "../../data/api.ts";
import type { Span } from "../../draw/span.ts";
import { QueryResult, useQuery } from "../../parts/data/asking.tsx";
import { loadTable } from "../../parts/data/full-table.ts";
import { plain } from "../../parts/text/plain.ts";
import { change, link } from "../../route.ts";
import type { PanelProps } from "../panel.ts";
import type { Band } from "./bands.ts";
import { shiftedBands } from "./bands.ts";
import type { ChartProps } from "./chart.tsx";
import { Chart } from "./chart.tsx";
import type { Curve } from "./curves.ts";
import { clockOffset, curvesOf, extent, shifted, windowOf } from "./curves.ts";
import { versusOf, wordOfInstant } from "./differences.ts";
import type { Hidden } from "./hiding.ts";
import { Legend } from "./legend.tsx";
import { loadStack, POINTS } from "./loading.ts";
import type { Below } from "./stretch.ts";

export type SharedChart = Omit<ChartProps, "curve" | "bands" | "chosen">;

interface BesideProps extends PanelProps {
  /** The id of the other recording. */
  other: string;
  /** What the charts of the trace itself have. */
  chart: SharedChart;
  below: Below;
  onHide: (hidden: Hidden) => void;
}

interface Loaded {
  curves: Curve[];
  bands: ReadonlyMap<string, Band[]>;
  /** How far its clock is ahead in ns; null if it was recorded at another time. */
  offset: number | null;
}

export function Beside(props: BesideProps) {
  const { traces, other, chart, data, params } = props;
  const window = data.inline ? null : windowOf(chart.span, chart.limits) ?? chart.limits;
  const asked = useQuery(() => load(props, window), JSON.stringify([props.trace.id, other, params["stack"], window]));
  const name = plain(traces.find((one) => one.id === other)?.name ?? other);
  return (
    <section class="memory-beside" aria-label={`Memory in ${name}`}>
      <h2>
        {name} <a href={link("memory", { trace: other, beside: props.trace.id })}>open</a>
      </h2>
      <QueryResult asked={asked} what="the other curve">{(loaded) => <Charts {...props} loaded={loaded} />}</QueryResult>
    </section>
  );
}

function Charts(props: BesideProps & { loaded: Loaded }) {
  const { chart, onHide, params, other, loaded: { curves, bands, offset } } = props;
  const versus = versusOf(params["versus"]);
  const instant = versus?.kind === "trace" && versus.id === other ? versus.time : null;
  const placed = useMemo(() => curves.map((curve) => ({
    curve: offset === null ? curve : shifted(curve, offset),
    bands: shiftedBands(bands.get(curve.key) ?? [], offset ?? 0),
  })), [curves, bands, offset]);
  if (curves.length === 0) return <p class="muted">It has no memory recorded.</p>;
  const compare = (time: number) => change(comparison(other, time - (offset ?? 0), props.below));
  const pin = instant === null ? null : instant + (offset ?? 0);
  const shared = { ...(offset === null ? alone(chart, extent(curves), compare) : chart), pin };
  return (
    <>
      {offset === null
        ? <p class="muted">It was recorded at another time, or nobody knows when: it is shown by its own clock. A click compares with that instant.</p>
        : chart.at !== null && <p><button type="button" onClick={() => compare(chart.at ?? 0)}>compare with its memory at the chosen instant</button></p>}
      {placed.map((one) => (
        <div key={one.curve.key}>
          <Chart {...shared} curve={one.curve} bands={one.bands.length === 0 ? null : one.bands} chosen={false} />
          {one.bands.length > 0 && (
            <Legend
              bands={one.bands}
              time={shared.at ?? one.curve.peak.time}
              when={shared.at === null ? "at its peak" : "at the chosen instant"}
              lit={chart.lit}
              hidden={chart.hidden}
              onHide={onHide}
              onLight={chart.onLight}
            />
          )}
        </div>
      ))}
    </>
  );
}

/** A chart by a clock of its own, in which nothing of the trace is chosen. */
function alone(chart: SharedChart, span: Span, onPoint: (time: number) => void): SharedChart {
  const nothing = () => undefined;
  return { ...chart, span, limits: span, brush: null, at: null, onSpan: nothing, onBrush: nothing, onPoint };
}

/** The address of a comparison with an instant of another trace, in a table or a flame graph. */
function comparison(other: string, time: number, below: Below): Record<string, string | undefined> {
  return { versus: wordOfInstant(other, time), focus: undefined, ...(below === "flame" ? {} : { show: undefined }) };
}

async function load(props: BesideProps, window: Span | null): Promise<Loaded> {
  const { data, trace, other, chart, params } = props;
  const [table, own, its] = await Promise.all([
    loadTable(data, other, "memory_curve"), originOf(data, trace.id), originOf(data, other),
  ]);
  const whole = curvesOf(table);
  const offset = whole.length === 0 ? null
    : clockOffset({ origin: own, span: chart.limits }, { origin: its, span: extent(whole) });
  const options: Record<string, number> = offset === null || window === null ? {}
    : { start: Math.max(Math.floor(window.from - offset), 0), end: Math.ceil(window.to - offset), points: POINTS };
  const [first] = whole;
  const [curves, stack] = await Promise.all([
    "end" in options ? loadTable(data, other, "memory_curve", options).then(curvesOf) : whole,
    first === undefined ? null : loadStack(data, other, options, params["stack"], first),
  ]);
  const peaks = new Map(whole.map((curve) => [curve.key, curve.peak]));
  return {
    curves: curves.map((curve) => ({ ...curve, peak: peaks.get(curve.key) ?? curve.peak })),
    bands: stack?.bands ?? new Map<string, Band[]>(),
    offset,
  };
}

async function originOf(data: Data, trace: string): Promise<number | null> {
  const clocks = (await data.job(trace)).ranks.flatMap((rank) => rank.traces);
  return clocks.find((clock) => clock.trace === trace)?.origin ?? null;
}
