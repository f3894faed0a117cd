// Two columns of a result as bars, a line or points, in the order of the table.

import type { Column, Page } from "../../data/api.ts";
import type { SqlColumn } from "../../data/sql.ts";
import { isText } from "../../data/table.ts";
import { shortName } from "../../draw/names.ts";
import { Chart, type ChartOption } from "../../parts/charts/chart.tsx";
import { Empty } from "../../parts/data/asking.tsx";
import { countText, text } from "../../units.ts";
import { wordsOf } from "../grid/cell.tsx";
import { type ChartChoice, isDrawable, MOST_POINTS, type Point, pointsOf } from "./charts.ts";

interface Props {
  chart: ChartChoice;
  columns: readonly SqlColumn[];
  page: Page;
  onDraw: (chart: ChartChoice) => void;
}

export function ResultChart({ chart, columns, page, onDraw }: Props) {
  const across = columns.find((column) => column.name === chart.x);
  const up = columns.find((column) => column.name === chart.y);
  const points = pointsOf(page, chart);
  const most = MOST_POINTS[chart.kind];
  return (
    <div class="sql-chart">
      <p class="sql-axes">
        <Axis label={chart.kind === "bar" ? "Bar" : "Across"} value={chart.x} columns={columns} onChange={(x) => onDraw({ ...chart, x })} />
        <Axis label={chart.kind === "bar" ? "Length" : "Up"} value={chart.y} columns={columns.filter(isDrawable)} onChange={(y) => onDraw({ ...chart, y })} />
        {page.total > most && <span class="muted">The first {countText(most)} of {countText(page.total)} rows are drawn.</span>}
      </p>
      {across === undefined || up === undefined || points.length === 0
        ? <Empty title="Nothing to draw" text="No row has a number in that column." />
        : <Drawn key={chart.kind} chart={chart} across={across} up={up} points={points} />}
    </div>
  );
}

function Axis(props: { label: string; value: string; columns: readonly SqlColumn[]; onChange: (name: string) => void }) {
  return (
    <label>
      <span class="muted">{props.label}</span>{" "}
      <select value={props.value} onChange={(event) => props.onChange(event.currentTarget.value)}>
        {props.columns.map((column) => <option key={column.name} value={column.name}>{column.name}</option>)}
      </select>
    </label>
  );
}

interface DrawnProps {
  chart: ChartChoice;
  across: Column;
  up: Column;
  points: readonly Point[];
}

/** Height of a bar with its name, and of all else, in pixels. */
const BAR = 24;
const AXIS = 40;
const HEIGHT = 320;

function Drawn(props: DrawnProps) {
  const { chart, across, up, points } = props;
  const name = (point: Point | undefined) => (point === undefined ? "" : wordsOf(across, point.x));
  return (
    <Chart
      label={`${up.name} by ${across.name}`}
      height={chart.kind === "bar" ? points.length * BAR + AXIS : HEIGHT}
      option={(colour) => (chart.kind === "bar" ? bars(props, colour) : overNumbers(props, colour))}
      of={JSON.stringify([chart, points.length, points])}
      count={points.length}
      tip={(at) => (
        <>
          <strong class="sql-tip">{name(points[at])}</strong>
          <div>{up.name}: {wordsOf(up, points[at]?.y ?? null)}</div>
        </>
      )}
      table={{ head: [across.name, up.name], rows: points.map((point) => [name(point), wordsOf(up, point.y)]) }}
    />
  );
}

type Colour = (name: string) => string;

/** Longest name of a bar in characters; the tooltip has all. */
const NAME = 34;

function bars({ across, up, points }: DrawnProps, colour: Colour): ChartOption {
  const names = points.map((point) => cut(shortName(wordsOf(across, point.x))));
  return {
    grid: { left: 4, right: 72, top: 4, bottom: 4, containLabel: true },
    xAxis: { type: "value", position: "bottom", splitLine: { lineStyle: { color: colour("line") } }, axisLabel: labels(up, colour), ...steps(up, points) },
    yAxis: { type: "category", data: names, inverse: true, axisTick: { show: false }, axisLine: { lineStyle: { color: colour("line-strong") } }, axisLabel: { color: colour("text"), fontFamily: "monospace", interval: 0 } },
    series: [{
      type: "bar",
      data: points.map((point) => point.y),
      itemStyle: { color: colour("runtime") },
      barMaxWidth: 14,
      label: { show: true, position: "right", color: colour("muted"), formatter: ({ value }) => wordsOf(up, Number(value)) },
    }],
  };
}

function cut(words: string): string {
  return words.length <= NAME ? words : `${words.slice(0, NAME - 12)}…${words.slice(-11)}`;
}

function overNumbers({ chart, across, up, points }: DrawnProps, colour: Colour): ChartOption {
  const isNamed = isText(across.unit) || across.unit === "flag";
  const lines = { lineStyle: { color: colour("line") } };
  const values = points.map((point): [number, number] => [Number(point.x), point.y]);
  return {
    grid: { left: 8, right: 24, top: 28, bottom: 24, containLabel: true },
    xAxis: isNamed
      ? { type: "category", data: points.map((point) => cut(shortName(wordsOf(across, point.x)))), axisLabel: { color: colour("muted") }, name: across.name, nameLocation: "middle", nameGap: 28 }
      : { type: "value", scale: true, splitLine: { show: false }, axisLabel: labels(across, colour), name: across.name, nameLocation: "middle", nameGap: 28 },
    yAxis: { type: "value", scale: chart.kind === "scatter", splitLine: lines, axisLabel: labels(up, colour), ...steps(up, points), name: up.name, nameTextStyle: { align: "left" } },
    series: [
      chart.kind === "line"
        ? { type: "line", data: isNamed ? points.map((point) => point.y) : values, showSymbol: points.length < 100, symbolSize: 5, lineStyle: { width: 1.5, color: colour("runtime") }, itemStyle: { color: colour("runtime") } }
        : { type: "scatter", data: isNamed ? points.map((point) => point.y) : values, symbolSize: 7, itemStyle: { color: colour("runtime"), opacity: 0.65 } },
    ],
  };
}

/** Steps of an axis of sizes, which are round in powers of two. */
function steps(column: Column, points: readonly Point[]): { interval?: number; max?: number } {
  const most = points.reduce((known, point) => Math.max(known, point.y), 0);
  if (column.unit !== "bytes" || most <= 0) return {};
  const interval = 2 ** Math.ceil(Math.log2(most / 6));
  return { interval, max: Math.ceil(most / interval) * interval };
}

function labels(column: Column, colour: Colour) {
  return { color: colour("muted"), hideOverlap: true, formatter: (value: number) => axisText(value, column) };
}

/** A value of an axis, without decimals that say nothing. */
function axisText(value: number, column: Column): string {
  if (value === 0) return "0";
  if (column.unit === "id") return Math.abs(value) >= 1e6 ? countText(value) : String(value);
  return text(value, column.unit).replace(/(\.\d*?)0+(?= )/, "$1").replace(". ", " ");
}
