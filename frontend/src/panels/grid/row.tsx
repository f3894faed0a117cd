// One row. It is drawn anew only if something of it changed, and its elements serve another row when
// it leaves: who scrolls through 100,000 rows sees a few dozen elements move.

import { Component } from "preact";
import type { Cell } from "../../data/api.ts";
import { valueAt } from "../../data/table.ts";
import { leadOf, Value } from "./cell.tsx";
import type { PlacedColumn } from "./layout/columns.ts";
import { barOf, hasBar, isNothing } from "./layout/columns.ts";
import type { Found } from "./query/rows.ts";

export interface RowProps {
  row: number;
  top: number;
  page: Found["page"] | null;
  at: number;
  columns: readonly PlacedColumn[];
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
    const { row, top, columns, from, to, isOpen, width } = this.props;
    const [first, start] = [columns[0], columns[from]];
    return (
      <div
        class="grid-row"
        role="row"
        data-row={row}
        aria-rowindex={row + 2}
        aria-selected={isOpen}
        style={{ transform: `translateY(${top}px)`, width: `${width}px` }}
      >
        {first && this.cell(first, 0)}
        {first && start && <Gap width={start.left - first.width} />}
        {columns.slice(from, to + 1).map((column, at) => this.cell(column, from + at))}
      </div>
    );
  }

  cell(column: PlacedColumn, at: number) {
    const { row, page, totals, active } = this.props;
    const value = this.value(column.name);
    const isActive = active === at;
    return (
      <div
        key={column.name}
        id={isActive ? cellId(row, at) : undefined}
        class={classOf(column, at === 0)}
        role={at === 0 ? "rowheader" : "gridcell"}
        aria-colindex={at + 1}
        data-column={at}
        data-active={isActive ? true : undefined}
        data-nothing={isNothing(column, value) ? true : undefined}
        style={{ width: `${column.width}px` }}
      >
        {hasBar(column) && <Bar share={barOf(column, value, totals[column.name])} />}
        {page === null ? at === 0 && <span class="grid-hole" /> : this.shown(column, value)}
      </div>
    );
  }

  shown(column: PlacedColumn, value: Cell) {
    const lead = leadOf(column.name, column.unit, (name) => this.value(name));
    const shown = <Value column={column} value={value} ending={column.endings.get(String(value))} />;
    return lead === null ? shown : <a class="grid-lead" href={lead} tabIndex={-1}>{shown}</a>;
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

export function classOf(column: PlacedColumn, isFirst: boolean): string {
  const kind = column.isNumber ? "number" : column.unit === "sentence" ? "prose" : "mono";
  return `grid-cell grid-${kind}${isFirst ? " grid-first" : ""}`;
}

/** In place of columns out of sight. */
export function Gap(props: { width: number }) {
  return props.width > 0 ? <div class="grid-gap" style={{ width: `${props.width}px` }} /> : null;
}

/** A share of the total, behind the number. */
function Bar(props: { share: number | null }) {
  return <span class="grid-bar" style={{ transform: `scaleX(${(props.share ?? 0).toFixed(4)})` }} />;
}
