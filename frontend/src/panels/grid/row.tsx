// One row. It is drawn anew only if something of it changed: a scroll moves hundreds of them.

import { Component } from "preact";
import type { Cell } from "../../api.ts";
import { valueAt } from "../../table.ts";
import { leadOf, Value } from "./cell.tsx";
import type { Placed } from "./columns.ts";
import { barOf, isNothing } from "./columns.ts";
import type { Found } from "./rows.ts";

export interface RowProps {
  row: number;
  top: number;
  page: Found["page"] | null;
  at: number;
  columns: readonly Placed[];
  /** The first and last of the columns in sight, beside the first of all. */
  from: number;
  to: number;
  totals: Readonly<Record<string, number | null>>;
  isOpen: boolean;
  /** The column of the active cell, if it is in this row. */
  active: number | null;
  width: number;
}

export class Row extends Component<RowProps> {
  override shouldComponentUpdate(next: RowProps): boolean {
    const now = this.props;
    return (
      next.page !== now.page || next.at !== now.at || next.row !== now.row || next.top !== now.top ||
      next.columns !== now.columns || next.from !== now.from || next.to !== now.to ||
      next.totals !== now.totals || next.isOpen !== now.isOpen || next.active !== now.active
    );
  }

  override render() {
    const { row, top, page, isOpen, width } = this.props;
    return (
      <div
        class="grid-row"
        role="row"
        data-row={row}
        aria-rowindex={row + 2}
        aria-selected={isOpen}
        style={{ transform: `translateY(${top}px)`, width: `${width}px` }}
      >
        {page === null ? <Missing column={this.props.columns[0]} /> : this.cells()}
      </div>
    );
  }

  cells() {
    const { columns, from, to } = this.props;
    const [first, start] = [columns[0], columns[from]];
    return (
      <>
        {first && this.cell(first, 0)}
        {first && start && <Gap width={start.left - first.width} />}
        {columns.slice(from, to + 1).map((column, at) => this.cell(column, from + at))}
      </>
    );
  }

  cell(column: Placed, at: number) {
    const { row, totals, active } = this.props;
    const value = this.value(column.name);
    const bar = barOf(column, value, totals[column.name]);
    const lead = leadOf(column.name, column.unit, (name) => this.value(name));
    const shown = <Value column={column} value={value} />;
    return (
      <div
        key={column.name}
        id={cellId(row, at)}
        class={classOf(column, at === 0)}
        role={at === 0 ? "rowheader" : "gridcell"}
        aria-colindex={at + 1}
        data-column={at}
        data-active={active === at ? true : undefined}
        data-nothing={isNothing(column, value) ? true : undefined}
        style={{ width: `${column.width}px` }}
      >
        {bar !== null && <span class="grid-bar" style={{ width: `${(bar * 100).toFixed(2)}%` }} />}
        {lead === null ? shown : <a class="grid-lead" href={lead} tabIndex={-1}>{shown}</a>}
      </div>
    );
  }

  value(name: string): Cell {
    const { page, at } = this.props;
    const values = page?.columns[name];
    return values === undefined ? null : valueAt(values, at);
  }
}

export function cellId(row: number, column: number): string {
  return `cell-${row}-${column}`;
}

export function classOf(column: Placed, isFirst: boolean): string {
  const kind = column.isNumber ? "number" : column.unit === "sentence" ? "prose" : "mono";
  return `grid-cell grid-${kind}${isFirst ? " grid-first" : ""}`;
}

/** In place of columns out of sight. */
export function Gap(props: { width: number }) {
  return props.width > 0 ? <div class="grid-gap" style={{ width: `${props.width}px` }} /> : null;
}

/** A row that is on its way. */
function Missing(props: { column: Placed | undefined }) {
  return (
    <div class="grid-cell grid-first" style={{ width: `${props.column?.width ?? 200}px` }}>
      <span class="grid-hole" />
    </div>
  );
}
