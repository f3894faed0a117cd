// Which chart a result is drawn as, in the address as `bar,name,total_ns`, and its points.

import type { Cell, Column, Page } from "../../data/api.ts";
import { isText, valueAt } from "../../data/table.ts";

export type ChartKind = "bar" | "line" | "scatter";

export interface ChartChoice {
  kind: ChartKind;
  x: string;
  y: string;
}

export interface Point {
  x: Cell;
  y: number;
}

/** Largest number of points of each kind: bars have names, which need room. */
export const MOST_POINTS: Readonly<Record<ChartKind, number>> = { bar: 60, line: 10_000, scatter: 10_000 };

const KINDS: ReadonlySet<string> = new Set(["bar", "line", "scatter"]);

/** The chart in the address, with columns of the result in place of those it does not have. */
export function readChart(text: string | undefined, columns: readonly Column[]): ChartChoice | null {
  const [kind = "", ...names] = (text ?? "").split(",").map(unescaped);
  if (!KINDS.has(kind)) return null;
  const [x, y] = names;
  const numbers = columns.filter((column) => isDrawable(column));
  const across = columns.find((column) => column.name === x) ?? firstAcross(kind as ChartKind, columns);
  const up = numbers.find((column) => column.name === y) ?? numbers.find((column) => column !== across) ?? numbers[0];
  if (across === undefined || up === undefined) return null;
  return { kind: kind as ChartKind, x: across.name, y: up.name };
}

export function writtenChart({ kind, x, y }: ChartChoice): string {
  return [kind, x, y].map((part) => part.replaceAll("%", "%25").replaceAll(",", "%2C")).join(",");
}

function unescaped(part: string): string {
  return part.replaceAll("%2C", ",").replaceAll("%25", "%");
}

/** Whether the values of a column are numbers that can be drawn. */
export function isDrawable(column: Pick<Column, "unit">): boolean {
  return !isText(column.unit) && column.unit !== "flag";
}

/** Bars are of names, lines and points over numbers. */
function firstAcross(kind: ChartKind, columns: readonly Column[]): Column | undefined {
  const wanted = columns.find((column) => (kind === "bar") === isText(column.unit));
  return wanted ?? columns[0];
}

/** The points of the first rows that have a value for y. */
export function pointsOf(page: Page, chart: ChartChoice): Point[] {
  const [across, up] = [page.columns[chart.x], page.columns[chart.y]];
  if (across === undefined || up === undefined) return [];
  const found: Point[] = [];
  for (let row = 0; row < page.rows && found.length < MOST_POINTS[chart.kind]; row += 1) {
    const y = valueAt(up, row);
    if (y !== null && Number.isFinite(Number(y))) found.push({ x: valueAt(across, row), y: Number(y) });
  }
  return found;
}
