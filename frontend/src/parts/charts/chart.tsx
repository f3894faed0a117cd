// A chart: drawn by ECharts on a canvas in the colours of the page, and the same numbers as a table
// for whoever cannot use the picture. Arrow keys walk along it.

import "./chart.css";
import { BarChart, LineChart, ScatterChart } from "echarts/charts";
import type { BarSeriesOption, LineSeriesOption, ScatterSeriesOption } from "echarts/charts";
import { DataZoomComponent, GridComponent, TooltipComponent } from "echarts/components";
import type {
  DataZoomComponentOption, GridComponentOption, TooltipComponentOption,
} from "echarts/components";
import { init, use } from "echarts/core";
import type { ComposeOption, ECharts } from "echarts/core";
import { CanvasRenderer } from "echarts/renderers";
import { render } from "preact";
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { colour, useTheme } from "./theme.ts";

use([BarChart, LineChart, ScatterChart, GridComponent, TooltipComponent, DataZoomComponent, CanvasRenderer]);

export type ChartOption = ComposeOption<
  | BarSeriesOption | LineSeriesOption | ScatterSeriesOption
  | GridComponentOption | TooltipComponentOption | DataZoomComponentOption
>;

export interface ChartProps {
  /** The description for screen readers. */
  label: string;
  height: number;
  /** What to draw; `colour` gives the value of a variable of style.css. */
  option: (colour: (name: string) => string) => ChartOption;
  /** A key that changes when the chart must be redrawn. */
  of: string;
  /** The number of points on the axis. */
  count: number;
  /** The text about a point. */
  tip: (at: number) => ComponentChildren;
  onPick?: (at: number) => void;
  /** What is pointed at and clicked: all above a place of the axis, or a point of the first series. */
  picks?: "column" | "point";
  table: { head: string[]; rows: string[][] };
  /** The chart itself, for zooming and the like, when it is there. */
  onReady?: (chart: ECharts) => void;
}

export function Chart(props: ChartProps) {
  const place = useRef<HTMLDivElement>(null);
  const chart = useRef<ECharts | null>(null);
  const latest = useRef(props);
  latest.current = props;
  const theme = useTheme();
  useEffect(() => {
    if (place.current === null) return undefined;
    const made = born(place.current, latest);
    chart.current = made.chart;
    latest.current.onReady?.(made.chart);
    return made.dispose;
  }, []);
  useEffect(() => {
    chart.current?.setOption(dressed(latest.current), { notMerge: true });
  }, [props.of, theme]);
  const keys = useKeys(chart, latest);
  return (
    <figure class="chart">
      <div
        ref={place}
        class="chart-canvas"
        role="img"
        tabIndex={0}
        aria-label={`${props.label}. Arrow keys walk along it; a table follows.`}
        style={{ height: `${props.height}px` }}
        {...keys}
      />
      <Alternative label={props.label} table={props.table} />
    </figure>
  );
}

type Latest = { readonly current: ChartProps };

/** An empty chart that follows the size of its place and tells of clicks. */
function born(place: HTMLElement, latest: Latest): { chart: ECharts; dispose: () => void } {
  const chart = init(place, null, { renderer: "canvas" });
  const watch = new ResizeObserver(() => chart.resize());
  watch.observe(place);
  // The whole height above an axis can be clicked, not only what is drawn there.
  chart.getZr().on("click", (event) => {
    if (latest.current.picks === "point") return;
    const point = [event.offsetX, event.offsetY];
    if (!chart.containPixel({ gridIndex: 0 }, point)) return;
    const [at] = chart.convertFromPixel({ gridIndex: 0 }, point) as number[];
    if (at !== undefined && at >= 0 && at < latest.current.count) latest.current.onPick?.(Math.round(at));
  });
  chart.on("click", ({ dataIndex }) => {
    if (latest.current.picks === "point") latest.current.onPick?.(dataIndex);
  });
  const dispose = () => {
    watch.disconnect();
    chart.dispose();
  };
  return { chart, dispose };
}

/** The option with defaults of all charts: font, tooltip, no animation. */
function dressed(props: ChartProps): ChartOption {
  return {
    animation: false,
    textStyle: { fontFamily: "system-ui, sans-serif", fontSize: 11, color: colour("muted") },
    tooltip: {
      trigger: props.picks === "point" ? "item" : "axis",
      confine: true,
      transitionDuration: 0,
      axisPointer: { type: "shadow", z: -1, shadowStyle: { color: colour("line"), opacity: 0.5 } },
      backgroundColor: colour("surface"),
      borderColor: colour("line-strong"),
      padding: [6, 10],
      textStyle: { color: colour("text"), fontSize: 12 },
      // An element, never text: names from the trace stay text, and no style stands in markup.
      formatter: (found) => tipOf(props, Array.isArray(found) ? found[0]?.dataIndex : found.dataIndex),
    },
    ...props.option(colour),
  };
}

function tipOf(props: ChartProps, at: number | undefined): HTMLElement {
  const tip = document.createElement("div");
  tip.className = "chart-tip";
  if (at !== undefined) render(<>{props.tip(at)}</>, tip);
  return tip;
}

/** Left and right show one place after the other, Enter opens the shown one. */
function useKeys(chart: { readonly current: ECharts | null }, latest: Latest) {
  const shown = useRef(-1);
  const show = (at: number) => {
    shown.current = Math.min(Math.max(at, 0), latest.current.count - 1);
    chart.current?.dispatchAction({ type: "showTip", seriesIndex: 0, dataIndex: shown.current });
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const { count, onPick } = latest.current;
    if (event.key === "ArrowRight") show(shown.current + 1);
    else if (event.key === "ArrowLeft") show(shown.current - 1);
    else if (event.key === "Home") show(0);
    else if (event.key === "End") show(count - 1);
    else if (event.key === "Enter" && shown.current >= 0) onPick?.(shown.current);
    else return;
    event.preventDefault();
  };
  const onBlur = () => {
    shown.current = -1;
    chart.current?.dispatchAction({ type: "hideTip" });
  };
  return { onKeyDown, onBlur };
}

function Alternative(props: { label: string; table: ChartProps["table"] }) {
  const { head, rows } = props.table;
  const [open, setOpen] = useState(false);
  return (
    <details class="chart-table" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>as a table</summary>
      {open && (
        <div class="chart-rows">
          <table>
            <caption class="visually-hidden">{props.label}</caption>
            <thead><tr>{head.map((title) => <th key={title} scope="col">{title}</th>)}</tr></thead>
            <tbody>
              {rows.map((row, at) => (
                <tr key={at}>{row.map((cell, column) => <td key={column} class="number">{cell}</td>)}</tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </details>
  );
}
