// The rows of the list of traces: searched, and in order.

import type { TraceInfo } from "../data/api.ts";

/** The traces that have every word of the text in name, folder or device, whatever its case. */
export function searchTraces(traces: readonly TraceInfo[], text: string): TraceInfo[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return traces.filter(({ name, run, device }) => {
    const place = `${run}/${name} ${device ?? ""}`.toLowerCase();
    return words.every((word) => place.includes(word));
  });
}

export const SORTABLE = ["name", "run", "device", "steps", "bytes", "modified"] as const;
export type SortColumn = (typeof SORTABLE)[number];

/** The order that the address asks for: a column, with "-" before it for the largest first. */
export function parseSort(text: string | undefined): { column: SortColumn; isDescending: boolean } | null {
  const isDescending = text?.startsWith("-") === true;
  const column = SORTABLE.find((known) => known === (isDescending ? text?.slice(1) : text));
  return column === undefined ? null : { column, isDescending };
}

/** The traces in the order that is asked for, unknown values last; else as the server has them. */
export function sortTraces(traces: readonly TraceInfo[], text: string | undefined): TraceInfo[] {
  const order = parseSort(text);
  if (order === null) return [...traces];
  const { column, isDescending } = order;
  return [...traces].sort((one, other) => {
    const [a, b] = [one[column], other[column]];
    if (a === null || b === null) return Number(a === null) - Number(b === null);
    return compared(a, b) * (isDescending ? -1 : 1);
  });
}

function compared(a: string | number, b: string | number): number {
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a).localeCompare(String(b), "en", { numeric: true });
}

/** A date without a locale, which sorts as it reads: 2026-11-29 16:23. */
export function dateText(seconds: number): string {
  const date = new Date(seconds * 1_000);
  const two = (part: number) => String(part).padStart(2, "0");
  const day = [date.getFullYear(), two(date.getMonth() + 1), two(date.getDate())].join("-");
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}`;
}
