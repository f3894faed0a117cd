// The map of the job: ranks by steps, coloured by a quantity, in an order of the reader's choice.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { usePalette } from "../../../parts/charts/theme.ts";
import { Choice } from "../../../parts/controls/choice.tsx";
import { QueryResult, useQuery } from "../../../parts/data/asking.tsx";
import { loadTable } from "../../../parts/data/full-table.ts";
import type { FullTable } from "../../../parts/data/full-table.ts";
import { plain } from "../../../parts/text/plain.ts";
import { change, go, link } from "../../../route.ts";
import { countText, timeText } from "../../../units.ts";
import type { JobProps } from "../index.tsx";
import { stepAt } from "../rank-traces.ts";
import { CellCard } from "./cell.tsx";
import { cellsOf, heatOf, layoutHeat, moved, placeOf, scaleOf, shownAt, under } from "./heat.ts";
import type { Heat, Pointed, Scale, Sheet } from "./heat.ts";
import { AXIS, paint } from "./painting.ts";
import type { Gutter } from "./painting.ts";
import { QUANTITIES, formatCell, labelGroups, orderOf, parseCell, quantityOf } from "./quantities.ts";
import type { Quantity } from "./quantities.ts";
import { Tip } from "./tip.tsx";

/** Cells that are asked for at most. */
const MOST = 400_000;
const HEIGHT = 560;
/** Width below which there is no room for names of groups and of ranks. */
const NARROW = 560;

export function MapSection(props: JobProps) {
  const { data, trace, params, job } = props;
  const quantity = quantityOf(params["value"]);
  const order = orderOf(job, params["axis"]);
  const ask = () => loadTable(data, trace.id, "ranks", { by: "step" }, { columns: ["label", "step", quantity.column] }, MOST);
  const asked = useQuery(ask, `${trace.id} ${quantity.column}`);
  return (
    <section aria-label="Steps of all ranks">
      <div class="job-head">
        <h2>Every step of every rank</h2>
      </div>
      <div class="job-map-tools">
        <Choice
          label="Colour"
          value={quantity.column}
          choices={QUANTITIES.map(({ column, title, doc }) => [column, title, doc] as const)}
          onChange={(value) => change({ value: value === QUANTITIES[0]?.column ? undefined : value })}
        />
        {job.orders.length > 0 && (
          <Choice
            label="Group ranks by"
            value={order?.name ?? ""}
            choices={[["", "number"], ...job.orders.map(({ name, title, how }) => [name, title, how] as const)]}
            onChange={(axis) => change({ axis: axis === "" ? undefined : axis })}
          />
        )}
      </div>
      {order !== null && <p class="job-map-how muted">{order.how}.</p>}
      <QueryResult asked={asked}>{(table) => <JobMap {...props} table={table} quantity={quantity} />}</QueryResult>
    </section>
  );
}

interface MapProps extends JobProps {
  table: FullTable;
  quantity: Quantity;
}

function JobMap(props: MapProps) {
  const { table, quantity, data, job, params } = props;
  const order = orderOf(job, params["axis"]);
  // an answer for another quantity is shown until its own is here
  const column = table.columns[quantity.column] === undefined ? Object.keys(table.columns).at(-1) ?? "" : quantity.column;
  const shown = quantityOf(column);
  const heat = useMemo(() => heatOf(table, column, labelGroups(job, order)), [table, column, job, order]);
  const scale = useMemo(() => scaleOf(heat.values, shown.fromZero), [heat, shown]);
  const [width, holder] = useWidth(heat.steps.length === 0);
  const [pointed, point] = useState<Pointed | null>(null);
  const gutter = gutterOf(heat, width);
  const left = gutter.groups + gutter.ranks;
  const sheet = useMemo(() => layoutHeat(heat, Math.max(width - left, 1), HEIGHT), [heat, width, left]);
  const cells = useMemo(() => cellsOf(heat, sheet), [heat, sheet]);
  const canvas = useRef<HTMLCanvasElement>(null);
  const palette = usePalette();
  useEffect(() => {
    if (canvas.current !== null && width > 0) paint(canvas.current, { heat, sheet, cells, scale, palette, hue: shown.hue, width, gutter });
  }, [heat, sheet, cells, scale, palette, shown, width]);
  const chosen = parseCell(job, params["cell"]);
  const choose = (at: Pointed | null) => {
    const cell = at && shownAt(heat, sheet, cells, at);
    const [label, step] = [heat.labels[cell?.rank ?? -1], heat.steps[cell?.step ?? -1]];
    if (label === undefined || step === undefined) return;
    change({ cell: formatCell(job, label, step) }, { replace: false });
  };
  const open = async (label: string, step: number) => {
    const found = await stepAt(data, job, label, step).catch(() => null);
    if (found !== null) go("timeline", found);
  };
  if (heat.steps.length === 0) return <p class="muted">No step is marked on any of the ranks.</p>;
  const keyed = (event: KeyboardEvent) => {
    const next = moved(sheet, pointed, event.key);
    const cell = pointed && shownAt(heat, sheet, cells, pointed);
    if (next !== null) point(next);
    else if (event.key !== "Enter" || cell === null) return;
    else if (chosen !== null && heat.labels[cell.rank] === chosen.label && heat.steps[cell.step] === chosen.step) void open(chosen.label, chosen.step);
    else choose(pointed);
    event.preventDefault();
  };
  const at = (event: MouseEvent) => under(sheet, event.offsetX - left, event.offsetY);
  return (
    <>
      <div class="job-map" ref={holder}>
        <canvas
          ref={canvas}
          tabIndex={0}
          role="img"
          data-ranks={heat.labels.length}
          data-steps={heat.steps.length}
          data-groups={heat.bands.length}
          style={{ height: `${sheet.height + AXIS}px` }}
          aria-label={`Map of ${heat.labels.length} ranks by ${heat.steps.length} steps, coloured by ${shown.title}${order === null ? "" : `, grouped by ${plain(order.title)}`}. Arrow keys go from cell to cell, Enter tells of one and again opens its timeline. The table of ranks by step has the numbers.`}
          onPointerMove={(event) => point(at(event))}
          onPointerLeave={() => point(null)}
          onClick={(event) => choose(at(event))}
          onDblClick={() => chosen !== null && void open(chosen.label, chosen.step)}
          onKeyDown={keyed}
          onBlur={() => point(null)}
        />
        {chosen !== null && <Mark {...{ sheet, left }} at={placeOf(heat, sheet, chosen.label, chosen.step)} kind="chosen" />}
        <Mark {...{ sheet, left }} at={pointed} kind="pointed" />
        {pointed && <Tip {...{ heat, sheet, cells, pointed, left, width, order }} quantity={shown} />}
        <Legend {...{ heat, sheet, scale, table, quantity: shown }} />
      </div>
      {chosen !== null && <CellCard {...props} {...chosen} open={open} />}
    </>
  );
}

/** The width of an element, which may come later. */
function useWidth(absent: boolean): [number, { current: HTMLDivElement | null }] {
  const [width, set] = useState(0);
  const holder = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (holder.current === null) return undefined;
    const { current } = holder;
    const watch = new ResizeObserver(() => set(current.clientWidth));
    watch.observe(current);
    return () => watch.disconnect();
  }, [absent]);
  return [width, holder];
}

function gutterOf(heat: Heat, width: number): Gutter {
  if (heat.bands.length === 0) return { groups: 0, ranks: width < NARROW ? 64 : 76 };
  return width < NARROW ? { groups: 64, ranks: 0 } : { groups: 84, ranks: 68 };
}

/** The outline of a cell. */
function Mark(props: { sheet: Sheet; left: number; at: Pointed | null; kind: "chosen" | "pointed" }) {
  const { sheet, left, at, kind } = props;
  const line = at && sheet.lines[at.row];
  if (!at || !line) return null;
  const place = { left: left + at.column * sheet.column, top: line.top, width: sheet.column, height: sheet.row };
  return <i class={`job-map-mark job-map-${kind}`} style={Object.fromEntries(Object.entries(place).map(([name, size]) => [name, `${size}px`]))} />;
}

function Legend(props: { heat: Heat; sheet: Sheet; scale: Scale; table: FullTable; quantity: Quantity }) {
  const { heat, sheet, scale, table, quantity } = props;
  const unknown = heat.values.some(Number.isNaN);
  const notes = [
    ...(scale.most > 1.1 * scale.high ? [`the darkest also stands for more, up to ${timeText(scale.most)}`] : []),
    ...(sheet.ranks > 1 ? [`each row shows the greatest of ${countText(sheet.ranks)} ranks`] : []),
    ...(sheet.steps > 1 ? [`each column that of ${countText(sheet.steps)} steps`] : []),
    ...(unknown ? ["no cell where it is unknown"] : []),
    ...(table.rows < table.total ? [`only the first ${countText(table.rows)} of ${countText(table.total)} steps of ranks are here`] : []),
  ];
  return (
    <p class="job-legend">
      <span class="job-scale">
        {quantity.title}: {scale.low > 0 ? timeText(scale.low) : "0"} <i style={{ background: `linear-gradient(to right, var(--sunken), var(--${quantity.hue}))` }} aria-hidden="true" /> {timeText(scale.high)}
      </span>
      <span class="muted">{notes.join("; ")}</span>
      <a href={link("ranks", { by: "step" })}>As a table</a>
    </p>
  );
}
