// The table itself: head, rows in sight, sums; one stop of the Tab key, arrows move within it.

import type { VirtualItem, Virtualizer } from "@tanstack/virtual-core";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Filter } from "../../data/api.ts";
import type { RowsQuery } from "./query/asking.ts";
import type { TableActions } from "./acting.ts";
import { copyCell, onClick, onKey } from "./acting.ts";
import type { PlacedColumn } from "./layout/columns.ts";
import { ColumnDistribution } from "./drawer/column-distribution.tsx";
import { FilterForm } from "./query/filter.tsx";
import { Head, Totals } from "./head.tsx";
import type { Place } from "./layout/keys.ts";
import { HEAD_ROW } from "./layout/keys.ts";
import { cellId, Row } from "./row.tsx";
import type { GridState } from "./query/state.ts";
import { nextSort } from "./query/state.ts";
import { Tip, useTip } from "./tip.tsx";
import { HEAD, MOST_ROWS, useColumnsInSight, useVirtualRows } from "./layout/virtual.ts";

export interface SheetProps {
  title: string;
  asking: RowsQuery;
  columns: readonly PlacedColumn[];
  state: GridState;
  onChange: (part: Partial<GridState>) => void;
}

type Virtual = Virtualizer<HTMLDivElement, Element>;
type Shown = { current: HTMLDivElement | null };

export function Sheet(props: SheetProps) {
  const { asking, columns, state } = props;
  const { rows } = asking;
  const scroller = useRef<HTMLDivElement>(null);
  const count = Math.min(rows.total, MOST_ROWS);
  const hasTotals = Object.keys(rows.head?.totals ?? {}).length > 0;
  const virtual = useVirtualRows(count, scroller, hasTotals);
  const [from, to] = useColumnsInSight(columns, scroller);
  const [active, setActive] = useState<Place>({ row: state.row ?? 0, column: 0 });
  const [filtered, setFiltered] = useState<number | null>(null);
  const [hasFocus, setFocus] = useState(false);
  const tip = useTip();
  useRowsInSight(asking, virtual);
  useFirstRow(rows, scroller);
  useOpenRow(state.row, count, virtual, setActive);
  const width = columns.reduce((sum, column) => sum + column.width, 0);
  const sight = { columns, from, to, width };
  const acting = { ...props, count, virtual, scroller, active, setActive, setFiltered, ...changes(props) };
  const pointed = tip.column ?? (hasFocus && active.row === HEAD_ROW ? active.column : null);
  return (
    <div class="grid-sheet" data-stale={asking.isStale} aria-busy={asking.isStale}>
      <div
        ref={scroller}
        class="grid-scroller"
        data-scroll="grid"
        role="grid"
        tabIndex={0}
        aria-label={props.title || "Table"}
        aria-rowcount={count + 1 + Number(hasTotals)}
        aria-colcount={columns.length}
        aria-activedescendant={cellId(active.row, active.column)}
        onKeyDown={(event) => onKey(event, acting)}
        onClick={(event) => onClick(event, acting)}
        onCopy={(event) => copyCell(event, acting)}
        onFocus={() => setFocus(true)}
        onBlur={() => setFocus(false)}
      >
        <Head {...sight} {...acting} active={active.row === HEAD_ROW ? active.column : null} onTip={tip.point} />
        <Body {...sight} {...props} virtual={virtual} active={active} />
        {rows.head && <Totals page={rows.head} {...sight} />}
      </div>
      <Popovers {...acting} filtered={filtered} tipped={filtered === null ? pointed : null} />
    </div>
  );
}

/** What a press on a column's head asks for. */
function changes({ state, onChange }: SheetProps): Pick<TableActions, "onSort" | "onWidth"> {
  return {
    onSort: (column) => onChange({ sort: nextSort(state.sort, column.name, column.isNumber), row: null }),
    onWidth: (column, wide) => {
      const { [column.name]: _, ...others } = state.widths;
      const width = Math.max(NARROWEST, Math.round(wide ?? 0));
      onChange({ widths: wide === null ? others : { ...others, [column.name]: width } });
    },
  };
}

const NARROWEST = 40;

interface BodyProps extends SheetProps {
  from: number;
  to: number;
  width: number;
  virtual: Virtual;
  active: Place;
}

function Body(props: BodyProps) {
  const { asking, columns, from, to, width, virtual, state, active } = props;
  const items = virtual.getVirtualItems();
  const most = useRef(1);
  most.current = Math.max(most.current, items.length);
  const totals = asking.rows.head?.totals ?? NO_TOTALS;
  return (
    <div class="grid-body" role="rowgroup" style={{ height: `${virtual.getTotalSize()}px`, width: `${width}px` }}>
      {inSlots(items, most.current).map((item, slot) => {
        if (item === undefined) return null;
        const found = asking.rows.find(item.index);
        return (
          <Row
            key={slot}
            row={item.index}
            top={item.start - HEAD}
            page={found?.page ?? null}
            at={found?.at ?? 0}
            columns={columns}
            from={from}
            to={to}
            totals={totals}
            width={width}
            isOpen={state.row === item.index}
            active={active.row === item.index ? active.column : null}
          />
        );
      })}
    </div>
  );
}

const NO_TOTALS = {};

/** Each row at the place of its element, so that elements never change places. */
function inSlots(items: readonly VirtualItem[], slots: number): (VirtualItem | undefined)[] {
  const placed = new Array<VirtualItem | undefined>(slots).fill(undefined);
  for (const item of items) placed[item.index % slots] = item;
  return placed;
}

/** The popup below a column's heading: its description, or its filter. */
function Popovers(props: TableActions & { tipped: number | null; filtered: number | null }) {
  const { asking, columns, scroller, state, tipped, filtered, onChange, setFiltered } = props;
  const [told, asked] = [tipped, filtered].map((at) => (at === null ? undefined : columns[at]));
  const narrow = (column: PlacedColumn, filters: Filter[]) => {
    onChange({ where: [...state.where.filter((one) => one.column !== column.name), ...filters], row: null });
  };
  const setFilters = (column: PlacedColumn, filters: Filter[]) => {
    narrow(column, filters);
    setFiltered(null);
    scroller.current?.focus();
  };
  return (
    <>
      {told && <Tip column={told} left={leftOf(scroller.current, told)} />}
      {asked && (
        <FilterForm
          key={asked.name}
          column={asked}
          filters={state.where.filter((one) => one.column === asked.name)}
          left={leftOf(scroller.current, asked)}
          onChange={(filters) => setFilters(asked, filters)}
          onClose={() => setFiltered(null)}
        >
          <ColumnDistribution
            column={asked}
            source={asking.column(asked.name)}
            filters={state.where.filter((one) => one.column === asked.name)}
            onFilter={(filters) => narrow(asked, filters)}
          />
        </FilterForm>
      )}
    </>
  );
}

const POPOVER = 340;

/** Where a column's head stands in the window of the table. */
function leftOf(scroller: HTMLElement | null, column: PlacedColumn): number {
  const left = column.left === 0 ? 0 : column.left - (scroller?.scrollLeft ?? 0);
  return Math.max(0, Math.min(left, (scroller?.clientWidth ?? 600) - POPOVER));
}

/** So many rows below those in sight are asked for too. */
const AHEAD = 100;

function useRowsInSight({ rows, version }: RowsQuery, virtual: Virtual): void {
  const items = virtual.getVirtualItems();
  const [first, last] = [items[0]?.index, items.at(-1)?.index];
  useEffect(() => {
    if (first !== undefined && last !== undefined) rows.want(first, last + 1 + AHEAD);
  }, [rows, version, first, last]);
}

/** Another question begins at its first row. */
function useFirstRow(rows: object, scroller: Shown): void {
  const before = useRef(rows);
  useEffect(() => {
    if (before.current !== rows) scroller.current?.scrollTo({ top: 0, behavior: "instant" });
    before.current = rows;
  }, [rows]);
}

/** The row that the address opens is in sight. */
function useOpenRow(row: number | null, count: number, virtual: Virtual, set: (place: (old: Place) => Place) => void): void {
  useEffect(() => {
    if (row === null || row >= count) return;
    virtual.scrollToIndex(row);
    set((place) => ({ ...place, row }));
  }, [row, count === 0]);
}
