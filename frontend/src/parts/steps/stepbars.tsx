// A stacked bar for each step by category, with marks for host and device time.

import "./stepbars.css";
import { link } from "../../route.ts";
import { text } from "../../units.ts";
import { Chart } from "../charts/chart.tsx";
import type { ChartOption } from "../charts/chart.tsx";
import { plain } from "../text/plain.ts";
import { Swatch } from "../charts/stack.tsx";
import { roundTime, stepName, stepSpan, uncountedSteps } from "./stepspan.ts";
import { STEP_PARTS } from "./stepparts.ts";
import type { StepPart } from "./stepparts.ts";
import { number, numbers, textAt } from "../data/full-table.ts";
import type { FullTable } from "../data/full-table.ts";

/** More bars than this are too thin to point at. */
const MOST_BARS = 1_000;
/** Among more than these the marks are dots. */
const MANY_BARS = 80;

export function StepBars(props: { steps: FullTable; height: number }) {
  const { steps, height } = props;
  const rows = Math.min(steps.rows, MOST_BARS);
  const parts = STEP_PARTS.filter((part) => numbers(steps, part.column).some((time) => time > 0));
  const hasDevice = (steps.columns["device_time"] ?? []).some((time) => time !== null);
  const pick = (row: number) => {
    location.hash = stepLink(steps, row) ?? location.hash;
  };
  return (
    <div class="step-bars">
      <Legend parts={parts} hasDevice={hasDevice} hasUncounted={uncountedSteps(steps).length > 0} />
      <Chart
        label="Time of each step by category"
        height={height}
        count={rows}
        of={`${steps.total} ${steps.columns["start"]?.[0] ?? ""}`}
        option={(colour) => option(steps, rows, parts, colour)}
        tip={(row) => <Tip steps={steps} row={row} parts={parts} />}
        onPick={pick}
        table={tableOf(steps, parts)}
      />
      {rows < steps.total && <p class="muted">The first {text(rows, "count")} of {text(steps.total, "count")} steps.</p>}
    </div>
  );
}

/** The timeline from a step's begin until host and device are done with it; null where unknown. */
export function stepLink(steps: FullTable, row: number): string | null {
  const span = stepSpan(steps, row);
  return span === null ? null : link("timeline", span);
}

function option(
  steps: FullTable, rows: number, parts: readonly StepPart[], colour: (name: string) => string,
): ChartOption {
  const shown = [...Array(rows).keys()];
  const counted = steps.columns["counted"] ?? [];
  const most = Math.max(0, ...numbers(steps, "time"), ...numbers(steps, "host_time"), ...numbers(steps, "device_time"));
  const size = rows > MANY_BARS ? 3 : 8;
  const mark = (column: string, symbol: string, fill: string) => ({
    type: "line" as const,
    data: shown.map((row) => number(steps, column, row)),
    lineStyle: { width: 0 },
    symbol,
    symbolSize: size,
    showSymbol: true,
    showAllSymbol: true,
    itemStyle: { color: fill, borderColor: colour("text"), borderWidth: size / 6, opacity: 1 },
    z: 5,
  });
  return {
    grid: { left: 58, right: 8, top: 8, bottom: 22 },
    xAxis: {
      type: "category",
      data: shown.map((row) => stepName(steps, row)),
      axisTick: { show: false },
      axisLine: { lineStyle: { color: colour("line-strong") } },
      axisLabel: { color: colour("muted"), hideOverlap: true },
    },
    yAxis: {
      type: "value",
      splitNumber: 4,
      axisLabel: { color: colour("muted"), formatter: (time: number) => roundTime(time, most) },
      splitLine: { lineStyle: { color: colour("line") } },
    },
    series: [
      ...parts.map((part) => ({
        type: "bar" as const,
        name: part.label,
        stack: "time",
        barMaxWidth: 56,
        barCategoryGap: rows > 60 ? "10%" : "30%",
        data: shown.map((row) => ({
          value: number(steps, part.column, row) ?? 0,
          itemStyle: { color: colour(part.colour), opacity: counted[row] === true ? 1 : 0.4 },
        })),
      })),
      mark("host_time", "circle", colour("surface")),
      mark("device_time", "diamond", colour("text")),
    ],
  };
}

function Legend(props: { parts: readonly StepPart[]; hasDevice: boolean; hasUncounted: boolean }) {
  return (
    <ul class="stack-legend">
      {props.parts.map((part) => <li key={part.column}><Swatch colour={part.colour} />{part.label}</li>)}
      <li><i class="step-mark" aria-hidden="true" />host time</li>
      {props.hasDevice && <li><i class="step-mark device" aria-hidden="true" />device time</li>}
      {props.hasUncounted && <li class="muted">pale: not counted</li>}
    </ul>
  );
}

const TIMES = [["time", "step time"], ["host_time", "host time"], ["device_time", "device time"]] as const;

function Tip(props: { steps: FullTable; row: number; parts: readonly StepPart[] }) {
  const { steps, row, parts } = props;
  const note = textAt(steps, "note", row);
  const name = stepName(steps, row);
  return (
    <>
      <strong>{name === "recording" ? "The whole recording" : `Step ${name}`}</strong>
      {TIMES.map(([column, label]) => (
        <TipRow key={column} label={label} time={number(steps, column, row)} />
      ))}
      <hr />
      {parts.map((part) => (
        <TipRow key={part.column} label={part.label} colour={part.colour} time={number(steps, part.column, row)} />
      ))}
      {note !== null && <em>not counted: {plain(note)}</em>}
    </>
  );
}

function TipRow(props: { label: string; time: number | null; colour?: string }) {
  if (props.time === null) return null;
  return (
    <>
      <span>{props.colour !== undefined && <Swatch colour={props.colour} />}{props.label}</span>
      <span class="number">{text(props.time, "ns")}</span>
    </>
  );
}

function tableOf(steps: FullTable, parts: readonly StepPart[]): { head: string[]; rows: string[][] } {
  const columns = [...TIMES, ...parts.map((part) => [part.column, part.label] as const)];
  return {
    head: ["step", "counted", ...columns.map(([, label]) => label)],
    rows: [...Array(Math.min(steps.rows, MOST_BARS)).keys()].map((row) => [
      stepName(steps, row),
      text(steps.columns["counted"]?.[row] ?? null, "flag"),
      ...columns.map(([column]) => text(number(steps, column, row), "ns")),
    ]),
  };
}
