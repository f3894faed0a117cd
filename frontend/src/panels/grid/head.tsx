// The head of a table: names, order, filters, widths; and the sums below it.

import { useRef } from "preact/hooks";
import type { Page } from "../../data/api.ts";
import { countedText } from "../../units.ts";
import type { TableActions } from "./acting.ts";
import { Value } from "./cell.tsx";
import type { PlacedColumn } from "./layout/columns.ts";
import { HEAD_ROW } from "./layout/keys.ts";
import { cellId, classOf, Gap } from "./row.tsx";
import type { GridState } from "./query/state.ts";

interface HeadProps extends Pick<TableActions, "onSort" | "onWidth" | "setFiltered"> {
  onTip: (column: number | null) => void;
  columns: readonly PlacedColumn[];
  from: number;
  to: number;
  state: GridState;
  active: number | null;
  width: number;
}

/** A first column of this width has room for a few words below it. */
const WIDE = 140;

export function Head(props: HeadProps) {
  const { columns, from, to, width } = props;
  const [first, start] = [columns[0], columns[from]];
  return (
    <div class="grid-head" role="row" aria-rowindex={1} style={{ width: `${width}px` }}>
      {first && <HeadCell {...props} column={first} at={0} />}
      {first && start && <Gap width={start.left - first.width} />}
      {columns.slice(from, to + 1).map((column, at) => (
        <HeadCell key={column.name} {...props} column={column} at={from + at} />
      ))}
    </div>
  );
}

function HeadCell(props: HeadProps & { column: PlacedColumn; at: number }) {
  const { column, at, state, active } = props;
  const order = state.sort === column.name ? "ascending" : state.sort === `-${column.name}` ? "descending" : "none";
  const isFiltered = state.where.some((filter) => filter.column === column.name);
  return (
    <div
      id={cellId(HEAD_ROW, at)}
      class={classOf(column, at === 0)}
      role="columnheader"
      aria-sort={order}
      aria-colindex={at + 1}
      aria-description={column.doc}
      data-head={at}
      data-active={active === at ? true : undefined}
      style={{ width: `${column.width}px` }}
      onPointerEnter={() => props.onTip(at)}
      onPointerLeave={() => props.onTip(null)}
    >
      <button type="button" class="grid-sort" tabIndex={-1} onClick={() => props.onSort(column)}>
        <span class="grid-label">{column.label}</span>
        {order !== "none" && <span class="grid-order" aria-hidden="true">{order === "ascending" ? "▲" : "▼"}</span>}
      </button>
      <button
        type="button"
        class="grid-funnel"
        tabIndex={-1}
        aria-label={`Filter ${column.label}`}
        title="How its values are distributed, and a filter"
        aria-pressed={isFiltered}
        onClick={() => props.setFiltered(at)}
      >
        <Funnel />
      </button>
      <Grip {...props} />
    </div>
  );
}

function Funnel() {
  return (
    <svg viewBox="0 0 12 12" width="11" height="11" aria-hidden="true">
      <path d="M1 2h10L7.2 6.4v4.1L4.8 9.2V6.4z" fill="currentColor" />
    </svg>
  );
}

/** The right edge of a column: drag it, or double-click it for the width that fits. */
function Grip(props: HeadProps & { column: PlacedColumn }) {
  const { column, onWidth } = props;
  const from = useRef<{ x: number; width: number } | null>(null);
  return (
    <span
      class="grid-grip"
      role="separator"
      aria-orientation="vertical"
      onPointerDown={(event) => {
        event.preventDefault();
        event.currentTarget.setPointerCapture(event.pointerId);
        from.current = { x: event.clientX, width: column.width };
      }}
      onPointerMove={(event) => {
        if (from.current) onWidth(column, from.current.width + event.clientX - from.current.x);
      }}
      onPointerUp={() => (from.current = null)}
      onPointerCancel={() => (from.current = null)}
      onDblClick={() => onWidth(column, null)}
    />
  );
}

/** The sums over all rows that match, of the columns whose sum means something. */
export function Totals(props: { page: Page; columns: readonly PlacedColumn[]; from: number; to: number; width: number }) {
  const { page, columns, from, to, width } = props;
  const [first, start] = [columns[0], columns[from]];
  const known = columns.some((column) => column.name in page.totals);
  if (!known || page.total === 0 || first === undefined) return null;
  const summed = page.total === page.held ? page.all : page.total; // sums are of all, in a report too
  const rows = countedText(summed, "row");
  const said = first.width < WIDE ? "Sum" : `Sum of ${rows}`;
  return (
    <div class="grid-totals" role="row" aria-rowindex={page.total + 2} style={{ width: `${width}px` }}>
      <div class={classOf(first, true)} role="rowheader" style={{ width: `${first.width}px` }}>
        {first.name in page.totals ? <Sum page={page} column={first} /> : <span class="grid-text">{said}</span>}
      </div>
      {start && <Gap width={start.left - first.width} />}
      {columns.slice(from, to + 1).map((column) => (
        <div key={column.name} class={classOf(column, false)} role="gridcell" style={{ width: `${column.width}px` }}>
          <Sum page={page} column={column} />
        </div>
      ))}
    </div>
  );
}

function Sum(props: { page: Page; column: PlacedColumn }) {
  const total = props.page.totals[props.column.name];
  if (total === undefined) return null;
  return <Value column={props.column} value={total} />;
}
