// The table itself: head, rows in sight, sums; one stop of the Tab key, arrows move within it.

import type { VirtualItem } from "@tanstack/virtual-core";
import type { ComponentChildren } from "preact";
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import type { Filter } from "../../api.ts";
import { isTyping } from "../../parts/keys.tsx";
import { valueAt } from "../../table.ts";
import type { Asking } from "./asking.ts";
import { wordsOf } from "./cell.tsx";
import type { Placed } from "./columns.ts";
import { FilterForm } from "./filter.tsx";
import { Head, HEAD_ROW, Totals } from "./head.tsx";
import type { Place } from "./keys.ts";
import { moved } from "./keys.ts";
import { cellId, Row } from "./row.tsx";
import type { GridState } from "./state.ts";
import { nextSort } from "./state.ts";
import { Tip } from "./tip.tsx";
import { MOST_ROWS, ROW, useColumnsInSight, useVirtualRows } from "./virtual.ts";

const HEAD = 42;
const STEP = 16;
const TIP_MS = 350;

export interface SheetProps {
  title: string;
  asking: Asking;
  columns: readonly Placed[];
  state: GridState;
  onChange: (part: Partial<GridState>) => void;
  children?: ComponentChildren;
}

export function Sheet(props: SheetProps) {
  const { asking, columns, state, onChange } = props;
  const { rows, version } = asking;
  const scroller = useRef<HTMLDivElement>(null);
  const count = Math.min(rows.total, MOST_ROWS);
  const totals = rows.head?.totals ?? {};
  const hasTotals = Object.keys(totals).length > 0;
  const virtual = useVirtualRows(count, scroller, { top: HEAD, bottom: hasTotals ? ROW + 2 : 0 });
  const [from, to] = useColumnsInSight(columns, scroller);
  const [active, setActive] = useState<Place>({ row: state.row ?? 0, column: 0 });
  const [filtered, setFiltered] = useState<number | null>(null);
  const [hasFocus, setFocus] = useState(false);
  const tip = useTip();
  const items = virtual.getVirtualItems();
  const slots = useMost(items.length);
  const width = columns.reduce((sum, column) => sum + column.width, 0);
  useEffect(() => {
    const [first, last] = [items[0], items.at(-1)];
    if (first && last) rows.want(first.index, last.index + 1);
  }, [rows, version, items[0]?.index, items.at(-1)?.index]);
  useFirstRow(rows, scroller);
  useEffect(() => {
    if (state.row === null || state.row >= count) return;
    virtual.scrollToIndex(state.row);
    setActive((place) => ({ ...place, row: state.row ?? 0 }));
  }, [state.row, count === 0]);
  const go = (place: Place) => {
    setActive(place);
    if (place.row >= 0) virtual.scrollToIndex(place.row);
    showColumn(scroller.current, columns, place.column);
  };
  const onWidth = useCallback((column: Placed, wide: number | null) => {
    const { [column.name]: _, ...others } = state.widths;
    onChange({ widths: wide === null ? others : { ...others, [column.name]: Math.max(40, Math.round(wide)) } });
  }, [state.widths, onChange]);
  const openRow = (row: number | null) => onChange({ row });
  const keys = (event: KeyboardEvent) => {
    if (isTyping(event) || event.altKey && !event.key.startsWith("Arrow")) return;
    const column = columns[active.column];
    const size = { rows: count, columns: columns.length, page: Math.max(1, Math.floor((scroller.current?.clientHeight ?? 400) / ROW) - 3) };
    const acts: Record<string, (() => void) | undefined> = {
      Enter: () => (active.row === HEAD_ROW ? column && sort(column) : openRow(state.row === active.row ? null : active.row)),
      Escape: state.row === null ? undefined : () => openRow(null),
      s: () => column && sort(column),
      f: () => setFiltered(active.column),
      c: event.ctrlKey || event.metaKey ? undefined : () => void copyRow(active.row),
    };
    if (event.altKey && column && /^Arrow(?:Left|Right)$/.test(event.key)) {
      onWidth(column, column.width + (event.key === "ArrowRight" ? STEP : -STEP));
    } else if (moved(event.key, active, size, event.ctrlKey)) {
      go(moved(event.key, active, size, event.ctrlKey) as Place);
    } else if (acts[event.key] && !event.ctrlKey && !event.metaKey) {
      acts[event.key]?.();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const sort = (column: Placed) => onChange({ sort: nextSort(state.sort, column.name, column.isNumber), row: null });
  const wordsAt = (place: Place): string => {
    const column = columns[place.column];
    if (column === undefined || place.row === HEAD_ROW) return column?.name ?? "";
    const found = rows.find(place.row);
    const values = found?.page.columns[column.name];
    return found && values ? wordsOf(column, valueAt(values, found.at)) : "";
  };
  const rowWords = (row: number) => columns.map((_, column) => wordsAt({ row, column })).join("\t");
  const copyRow = (row: number) => navigator.clipboard?.writeText(rowWords(row));
  const copied = (event: ClipboardEvent) => {
    if (String(getSelection()) !== "") return;
    event.clipboardData?.setData("text/plain", wordsAt(active));
    event.preventDefault();
  };
  const clicked = (event: MouseEvent) => {
    const place = placeOf(event.target);
    if (place === null) return;
    setActive(place);
    scroller.current?.focus({ preventScroll: true });
    const isChoosing = String(getSelection()) !== "" || (event.target as Element).closest("a, button") !== null;
    if (place.row >= 0 && !isChoosing) openRow(state.row === place.row ? null : place.row);
  };
  const tipped = filtered === null ? tip.column ?? (hasFocus && active.row === HEAD_ROW ? active.column : null) : null;
  const setFilters = (column: Placed, filters: Filter[]) => {
    onChange({ where: [...state.where.filter((one) => one.column !== column.name), ...filters], row: null });
    setFiltered(null);
    scroller.current?.focus();
  };
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
        onKeyDown={keys}
        onFocus={() => setFocus(true)}
        onBlur={() => setFocus(false)}
        onClick={clicked}
        onCopy={copied}
      >
        <Head
          columns={columns}
          from={from}
          to={to}
          state={state}
          width={width}
          active={active.row === HEAD_ROW ? active.column : null}
          onSort={sort}
          onFilter={(column) => setFiltered((open) => (open === column ? null : column))}
          onWidth={onWidth}
          onTip={tip.point}
        />
        <div class="grid-body" role="rowgroup" style={{ height: `${virtual.getTotalSize()}px`, width: `${width}px` }}>
          {inSlots(items, slots).map((item, slot) => {
            if (item === undefined) return null;
            const found = rows.find(item.index);
            return (
              <Row
                key={slot}
                row={item.index}
                top={item.start}
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
        {rows.head && <Totals page={rows.head} columns={columns} from={from} to={to} width={width} />}
        {props.children}
      </div>
      {tipped !== null && columns[tipped] && (
        <Tip column={columns[tipped] as Placed} left={leftOf(scroller.current, columns, tipped)} />
      )}
      {filtered !== null && columns[filtered] && (
        <FilterForm
          key={filtered}
          column={columns[filtered] as Placed}
          filters={state.where.filter((one) => one.column === columns[filtered]?.name)}
          left={leftOf(scroller.current, columns, filtered)}
          onChange={(filters) => setFilters(columns[filtered] as Placed, filters)}
          onClose={() => setFiltered(null)}
        />
      )}
    </div>
  );
}

/** So many rows were in sight at most: as many elements take turns in showing them. */
function useMost(count: number): number {
  const most = useRef(1);
  most.current = Math.max(most.current, count);
  return most.current;
}

/** Each row at the place of its element, so that elements never change places. */
function inSlots(items: readonly VirtualItem[], slots: number): (VirtualItem | undefined)[] {
  const placed = new Array<VirtualItem | undefined>(slots).fill(undefined);
  for (const item of items) placed[item.index % slots] = item;
  return placed;
}

/** Another question begins at its first row. */
function useFirstRow(rows: object, scroller: { current: HTMLElement | null }): void {
  const before = useRef(rows);
  useEffect(() => {
    if (before.current !== rows) scroller.current?.scrollTo({ top: 0, behavior: "instant" });
    before.current = rows;
  }, [rows]);
}

/** The column whose head the pointer rests on. */
function useTip(): { column: number | null; point: (column: number | null) => void } {
  const [column, set] = useState<number | null>(null);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const point = useCallback((next: number | null) => {
    clearTimeout(timer.current);
    if (next === null) set(null);
    else timer.current = setTimeout(() => set(next), TIP_MS);
  }, []);
  useEffect(() => () => clearTimeout(timer.current), []);
  return { column, point };
}

function placeOf(target: EventTarget | null): Place | null {
  const cell = (target as Element | null)?.closest<HTMLElement>("[data-column], [data-head]");
  if (!cell) return null;
  if (cell.dataset["head"] !== undefined) return { row: HEAD_ROW, column: Number(cell.dataset["head"]) };
  const row = cell.closest<HTMLElement>("[data-row]")?.dataset["row"];
  return row === undefined ? null : { row: Number(row), column: Number(cell.dataset["column"]) };
}

const POPOVER = 260;

/** Where a column's head stands in the window of the table. */
function leftOf(scroller: HTMLElement | null, columns: readonly Placed[], at: number): number {
  const left = at === 0 ? 0 : (columns[at]?.left ?? 0) - (scroller?.scrollLeft ?? 0);
  return Math.max(0, Math.min(left, (scroller?.clientWidth ?? 600) - POPOVER));
}

function showColumn(scroller: HTMLElement | null, columns: readonly Placed[], at: number): void {
  const [column, first] = [columns[at], columns[0]];
  if (scroller === null || column === undefined || first === undefined || at === 0) return;
  const [low, high] = [column.left - first.width, column.left + column.width - scroller.clientWidth];
  if (scroller.scrollLeft > low) scroller.scrollLeft = low;
  else if (scroller.scrollLeft < high) scroller.scrollLeft = high;
}
