// Actions of keys and clicks in a table.

import type { Virtualizer } from "@tanstack/virtual-core";
import { isTyping } from "../../parts/controls/keys.tsx";
import { valueAt } from "../../data/table.ts";
import type { RowsQuery } from "./query/asking.ts";
import { wordsOf } from "./cell.tsx";
import type { PlacedColumn } from "./layout/columns.ts";
import type { Place } from "./layout/keys.ts";
import { HEAD_ROW, nextCell } from "./layout/keys.ts";
import type { GridState } from "./query/state.ts";
import { HEAD, ROW } from "./layout/virtual.ts";

export interface TableActions {
  asking: RowsQuery;
  columns: readonly PlacedColumn[];
  state: GridState;
  count: number;
  virtual: Virtualizer<HTMLDivElement, Element>;
  scroller: { current: HTMLDivElement | null };
  active: Place;
  setActive: (place: Place) => void;
  setFiltered: (column: number | null) => void;
  onChange: (part: Partial<GridState>) => void;
  onSort: (column: PlacedColumn) => void;
  /** Sets a column's width; null fits the content. */
  onWidth: (column: PlacedColumn, width: number | null) => void;
}

/** A key widens or narrows a column by so many pixels. */
const STEP = 16;

export function onKey(event: KeyboardEvent, acting: TableActions): void {
  if (isTyping(event) || !(resized(event, acting) || walked(event, acting) || acted(event, acting))) return;
  event.preventDefault();
  event.stopPropagation();
}

function resized(event: KeyboardEvent, { columns, active, onWidth }: TableActions): boolean {
  const by = { ArrowLeft: -STEP, ArrowRight: STEP }[event.key];
  const column = columns[active.column];
  if (!event.altKey || by === undefined || column === undefined) return false;
  onWidth(column, column.width + by);
  return true;
}

function walked(event: KeyboardEvent, acting: TableActions): boolean {
  if (event.altKey || event.metaKey) return false;
  const { columns, count, scroller } = acting;
  const page = Math.max(1, Math.floor(((scroller.current?.clientHeight ?? 0) - HEAD) / ROW) - 1);
  const place = nextCell(event.key, acting.active, { rows: count, columns: columns.length, page }, event.ctrlKey);
  if (place === null) return false;
  acting.setActive(place);
  if (place.row >= 0) acting.virtual.scrollToIndex(place.row);
  showColumn(scroller.current, columns, place.column);
  return true;
}

function acted(event: KeyboardEvent, acting: TableActions): boolean {
  if (event.altKey || event.ctrlKey || event.metaKey) return false;
  const { active, columns, state } = acting;
  const column = columns[active.column];
  if (event.key === "Escape" && state.row !== null) acting.onChange({ row: null });
  else if (event.key === "Enter" && active.row !== HEAD_ROW) open(active.row, acting);
  else if ((event.key === "Enter" || event.key === "s") && column) acting.onSort(column);
  else if (event.key === "f") acting.setFiltered(active.column);
  else if (event.key === "c") void navigator.clipboard?.writeText(rowWords(active.row, acting));
  else return false;
  return true;
}

function open(row: number, { state, onChange }: TableActions): void {
  onChange({ row: state.row === row ? null : row });
}

export function onClick(event: MouseEvent, acting: TableActions): void {
  const place = placeOf(event.target);
  if (place === null) return;
  acting.setActive(place);
  acting.scroller.current?.focus({ preventScroll: true });
  const isOther = String(getSelection()) !== "" || (event.target as Element).closest("a, button") !== null;
  if (place.row !== HEAD_ROW && !isOther) open(place.row, acting);
}

/** The cell that the keys are on goes where the browser's own key puts what is chosen. */
export function copyCell(event: ClipboardEvent, acting: TableActions): void {
  if (String(getSelection()) !== "") return;
  event.clipboardData?.setData("text/plain", wordsAt(acting.active, acting));
  event.preventDefault();
}

function rowWords(row: number, acting: TableActions): string {
  return acting.columns.map((_, column) => wordsAt({ row, column }, acting)).join("\t");
}

function wordsAt(place: Place, { columns, asking }: TableActions): string {
  const column = columns[place.column];
  if (column === undefined) return "";
  if (place.row === HEAD_ROW) return column.label;
  const found = asking.rows.find(place.row);
  const values = found?.page.columns[column.name];
  return found && values ? wordsOf(column, valueAt(values, found.at)) : "";
}

function placeOf(target: EventTarget | null): Place | null {
  const cell = (target as Element | null)?.closest<HTMLElement>("[data-column], [data-head]");
  if (!cell) return null;
  const { head, column } = cell.dataset;
  if (head !== undefined) return { row: HEAD_ROW, column: Number(head) };
  const row = cell.closest<HTMLElement>("[data-row]")?.dataset["row"];
  return row === undefined ? null : { row: Number(row), column: Number(column) };
}

function showColumn(scroller: HTMLElement | null, columns: readonly PlacedColumn[], at: number): void {
  const [column, first] = [columns[at], columns[0]];
  if (scroller === null || column === undefined || first === undefined || at === 0) return;
  const [low, high] = [column.left - first.width, column.left + column.width - scroller.clientWidth];
  if (scroller.scrollLeft > low) scroller.scrollLeft = low;
  else if (scroller.scrollLeft < high) scroller.scrollLeft = high;
}
