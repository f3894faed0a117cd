// Ranks by steps: a value of each step of each rank as a colour. A click opens that step.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Job } from "../../data/api.ts";
import { fitCanvas } from "../../draw/canvas.ts";
import type { Palette } from "../../draw/icicle.ts";
import { QueryResult, useQuery } from "../../parts/data/asking.tsx";
import { Choice } from "../../parts/controls/choice.tsx";
import { usePalette } from "../../parts/charts/theme.ts";
import { plain } from "../../parts/text/plain.ts";
import { loadTable } from "../../parts/data/full-table.ts";
import type { FullTable } from "../../parts/data/full-table.ts";
import { change, go, link } from "../../route.ts";
import { countText, shareText, timeText } from "../../units.ts";
import { largestValueAt, labelledRows, heatOf, layoutHeat } from "./heat.ts";
import type { Heat, Sheet } from "./heat.ts";
import type { JobProps } from "./index.tsx";
import { stepAt } from "./rank-traces.ts";

/** The values that can be shown, with their colours. */
const VALUES = [
  ["late", "late", "loading", "By how much the rank came later than the median of the other ranks, at most"],
  ["waited", "waited", "collective", "In collectives, until the last rank had come"],
  ["time", "step", "runtime", "Of the step, until it was done on host and device"],
  ["data_loading", "data", "loading", "Of the step: it waited for the next batch"],
  ["communication", "exposed", "collective", "Of the step: a collective ran and nothing else on the device"],
  ["kernel", "kernels", "kernel", "Of the step: a kernel but a collective ran"],
  ["cpu", "host", "operator", "Of the step: the device was idle, the host in an operator"],
] as const;
/** Cells that are asked for at most. */
const MOST = 400_000;
const HEIGHT = 480;
const GUTTER = 84;
const AXIS = 20;

export function HeatSection(props: JobProps) {
  const { data, trace, params } = props;
  const [column, , hue] = VALUES.find(([name]) => name === params["value"]) ?? VALUES[0];
  const ask = () => loadTable(data, trace.id, "ranks", { by: "step" }, { columns: [...new Set(["label", "step", "time", column])] }, MOST);
  const asked = useQuery(ask, `${trace.id} ${column}`);
  return (
    <section aria-label="Steps of all ranks">
      <div class="job-head">
        <h2>Step by step</h2>
        <Choice
          label="Show"
          value={column as string}
          choices={VALUES.map(([name, title, , doc]) => [name, title, doc] as const)}
          onChange={(value) => change({ value })}
        />
      </div>
      <QueryResult asked={asked}>{(table) => <Heatmap {...props} table={table} column={column} hue={hue} />}</QueryResult>
    </section>
  );
}

interface Pointed {
  row: number;
  column: number;
}

function Heatmap(props: JobProps & { table: FullTable; column: string; hue: string }) {
  const { table, column, hue, data, job } = props;
  const heat = useMemo(() => heatOf(table, column), [table, column]);
  const [width, setWidth] = useState(0);
  const [pointed, point] = useState<Pointed | null>(null);
  const [lost, lose] = useState(false);
  const holder = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const palette = usePalette();
  const sheet = layoutHeat(heat, Math.max(width - GUTTER, 1), HEIGHT);
  useEffect(() => {
    if (holder.current === null) return undefined;
    const { current } = holder;
    const watch = new ResizeObserver(() => setWidth(current.clientWidth));
    watch.observe(current);
    return () => watch.disconnect();
  }, [heat.steps.length === 0]);
  useEffect(() => {
    if (canvas.current !== null && width > 0) draw(canvas.current, { heat, sheet, palette, hue, width, pointed });
  }, [heat, width, palette, hue, pointed]);
  const open = async ({ row, column: step }: Pointed) => {
    const cell = largestValueAt(heat, sheet, row, step);
    const [label, number] = [heat.labels[cell?.rank ?? -1], heat.steps[cell?.step ?? -1]];
    if (label === undefined || number === undefined) return;
    const found = await stepAt(data, job, label, number).catch(() => null);
    if (found === null) lose(true);
    else go("timeline", found);
  };
  if (heat.steps.length === 0) return <p class="muted">No step is marked on any of the ranks.</p>;
  return (
    <div class="job-map" ref={holder}>
      <canvas
        ref={canvas}
        tabIndex={0}
        role="img"
        data-ranks={heat.labels.length}
        data-steps={heat.steps.length}
        style={{ height: `${sheet.rows * sheet.row + AXIS}px` }}
        aria-label={`Map of ${heat.labels.length} ranks by ${heat.steps.length} steps, coloured by ${column.replace("_", " ")}. Arrow keys go from cell to cell, Enter opens the timeline. The table of ranks by step has the numbers.`}
        onPointerMove={(event) => point(under(sheet, event.offsetX, event.offsetY))}
        onPointerLeave={() => point(null)}
        onClick={(event) => {
          const cell = under(sheet, event.offsetX, event.offsetY);
          if (cell !== null) void open(cell);
        }}
        onKeyDown={(event) => keyed(event, sheet, pointed, point, (cell) => void open(cell))}
        onBlur={() => point(null)}
      />
      {pointed && <Tip heat={heat} sheet={sheet} pointed={pointed} job={job} width={width} />}
      <Legend heat={heat} sheet={sheet} table={table} hue={hue} />
      {lost && <p class="muted" role="status">The step's time in the rank's trace is unknown.</p>}
    </div>
  );
}

function under(sheet: Sheet, x: number, y: number): Pointed | null {
  const [row, column] = [Math.floor(y / sheet.row), Math.floor((x - GUTTER) / sheet.column)];
  return row >= 0 && row < sheet.rows && column >= 0 && column < sheet.columns ? { row, column } : null;
}

function keyed(
  event: KeyboardEvent, sheet: Sheet, pointed: Pointed | null, point: (at: Pointed) => void, open: (at: Pointed) => void,
): void {
  const by = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] }[event.key];
  if (event.key === "Enter" && pointed !== null) open(pointed);
  else if (by !== undefined) {
    const { row, column } = pointed ?? { row: 0, column: -(by[1] ?? 0) };
    const kept = (value: number, count: number) => Math.min(Math.max(value, 0), count - 1);
    point({
      row: kept(row + (pointed === null ? 0 : by[0] ?? 0), sheet.rows),
      column: kept(column + (by[1] ?? 0), sheet.columns),
    });
  } else return;
  event.preventDefault();
}

interface Drawn {
  heat: Heat;
  sheet: Sheet;
  palette: Palette;
  hue: string;
  width: number;
  pointed: Pointed | null;
}

function draw(canvas: HTMLCanvasElement, drawn: Drawn): void {
  const { heat, sheet, palette, hue, width, pointed } = drawn;
  const context = canvas.getContext("2d", { alpha: false });
  if (context === null) return;
  const high = sheet.rows * sheet.row;
  fitCanvas(canvas, width, high + AXIS);
  context.fillStyle = palette["bg"] ?? "";
  context.fillRect(0, 0, width, high + AXIS);
  const gap = sheet.row > 8 && sheet.column > 8 ? 1 : 0;
  for (let row = 0; row < sheet.rows; row++) {
    for (let column = 0; column < sheet.columns; column++) {
      const [x, y] = [GUTTER + column * sheet.column, row * sheet.row];
      const right = GUTTER + (column + 1) * sheet.column;
      const cell = largestValueAt(heat, sheet, row, column);
      context.globalAlpha = 1;
      context.fillStyle = (cell === null ? palette["bg"] : palette["sunken"]) ?? "";
      context.fillRect(x, y, right - x - gap, sheet.row - gap);
      if (cell === null || cell.value <= 0 || heat.most <= 0) continue;
      context.globalAlpha = cell.value / heat.most;
      context.fillStyle = palette[hue] ?? "";
      context.fillRect(x, y, right - x - gap, sheet.row - gap);
    }
  }
  context.globalAlpha = 1;
  write(context, drawn);
  if (pointed === null) return;
  context.strokeStyle = palette["text"] ?? "";
  context.lineWidth = 1.5;
  context.strokeRect(GUTTER + pointed.column * sheet.column + 0.25, pointed.row * sheet.row + 0.25, sheet.column - gap - 0.5, sheet.row - gap - 0.5);
}

/** Names of ranks on the left and of steps below. */
function write(context: CanvasRenderingContext2D, { heat, sheet, palette }: Drawn): void {
  context.font = `11px ${palette["font"] ?? "sans-serif"}`;
  context.fillStyle = palette["muted"] ?? "";
  context.textBaseline = "middle";
  context.textAlign = "right";
  const rows = labelledRows(sheet.row, 14);
  for (let row = 0; row < sheet.rows; row += rows) {
    const label = plain(heat.labels[row * sheet.ranks] ?? "").slice(0, 13);
    context.fillText(label, GUTTER - 8, row * sheet.row + Math.max(sheet.row, 10) / 2);
  }
  context.textAlign = "center";
  const columns = labelledRows(sheet.column, 34);
  for (let column = 0; column < sheet.columns; column += columns) {
    const step = String(heat.steps[column * sheet.steps] ?? "");
    context.fillText(step, GUTTER + (column + 0.5) * sheet.column, sheet.rows * sheet.row + AXIS / 2 + 1);
  }
  context.textAlign = "right";
  context.fillText("step", GUTTER - 8, sheet.rows * sheet.row + AXIS / 2 + 1);
}

function Tip(props: { heat: Heat; sheet: Sheet; pointed: Pointed; job: Job; width: number }) {
  const { heat, sheet, pointed, width } = props;
  const cell = largestValueAt(heat, sheet, pointed.row, pointed.column);
  if (cell === null) return null;
  const x = GUTTER + (pointed.column + 1) * sheet.column;
  const place = x > width * 0.7 ? { right: `${width - x + sheet.column + 6}px` } : { left: `${x + 6}px` };
  const shared = sheet.ranks * sheet.steps > 1;
  return (
    <div class="job-tip" style={{ ...place, top: `${(pointed.row + 1) * sheet.row}px` }} role="presentation">
      <b>{plain(heat.labels[cell.rank] ?? "")}, step {heat.steps[cell.step]}</b>
      <span class="number">{timeText(cell.value)}</span>
      {shared && <span class="muted">the greatest here</span>}
    </div>
  );
}

/** NaN where no step tells its time. */
function meanTime(table: FullTable): number {
  const times = (table.columns["time"] ?? []).filter((time) => typeof time === "number");
  return times.reduce((sum, time) => sum + time, 0) / times.length;
}

function Legend(props: { heat: Heat; sheet: Sheet; table: FullTable; hue: string }) {
  const { heat, sheet, table, hue } = props;
  const shares = [
    ...(sheet.ranks > 1 ? [`each row shows the greatest of ${countText(sheet.ranks)} ranks`] : []),
    ...(sheet.steps > 1 ? [`each column that of ${countText(sheet.steps)} steps`] : []),
    ...(table.rows < table.total ? [`only the first ${countText(table.rows)} of ${countText(table.total)} steps of ranks are here`] : []),
  ];
  const share = table.rows === 0 ? null : heat.most / meanTime(table);
  return (
    <p class="job-legend">
      <span class="job-scale">
        0 <i style={{ background: `linear-gradient(to right, var(--sunken), var(--${hue}))` }} aria-hidden="true" /> {timeText(heat.most)}
        {share !== null && Number.isFinite(share) && `, ${shareText(share)} of the mean step`}
      </span>
      <span class="muted">{shares.join("; ")}</span>
      <a href={link("ranks", { by: "step" })}>As a table</a>
    </p>
  );
}
