// The rows of the view `overview`, by subject.

import type { FullTable } from "../data/full-table.ts";
import { sentLabel } from "../data/labels.ts";
import type { Labels } from "../data/labels.ts";
import { number, textAt } from "../data/full-table.ts";

export interface Figure {
  section: string;
  device: number | null;
  metric: string;
  /** The metric's name for people. */
  name: string;
  /** The value as text; null if unknown. */
  text: string | null;
  definition: string;
  value: number | null;
  share: number | null;
}

export function figures(table: FullTable, labels: Labels): Figure[] {
  return Array.from({ length: table.rows }, (_, row) => ({
    section: textAt(table, "section", row) ?? "",
    device: number(table, "device", row),
    metric: textAt(table, "metric", row) ?? "",
    name: sentLabel(labels, textAt(table, "metric", row) ?? "")?.text ?? textAt(table, "metric", row) ?? "",
    text: textAt(table, "text", row),
    definition: textAt(table, "definition", row) ?? "",
    value: number(table, "value", row),
    share: number(table, "share", row),
  }));
}

export function inSection(all: readonly Figure[], section: string): Figure[] {
  return all.filter((figure) => figure.section === section);
}

/** One row per metric, with one value per device. */
export function byDevice(all: readonly Figure[]): { devices: (number | null)[]; rows: (Figure | null)[][] } {
  const found = inSection(all, "device");
  const devices = [...new Set(found.map((figure) => figure.device))];
  const metrics = [...new Set(found.map((figure) => figure.metric))];
  const rows = metrics.map((metric) =>
    devices.map((device) => found.find((figure) => figure.device === device && figure.metric === metric) ?? null),
  );
  return { devices, rows };
}

/** A time with median and spread, from rows such as `step time, median`. */
export interface Spread {
  name: string;
  median: Figure | null;
  deviation: Figure | null;
  p95: Figure | null;
}

/** The step's times, and its other figures. */
export function stepFigures(all: readonly Figure[]): { times: Spread[]; others: Figure[] } {
  const found = inSection(all, "steps");
  const times = new Map<string, Spread>();
  for (const figure of found) {
    const [name = "", kind = ""] = figure.metric.split(", ");
    const spread = times.get(name) ?? { name, median: null, deviation: null, p95: null };
    if (kind === "median" || kind === "deviation" || kind === "p95") {
      times.set(name, { ...spread, [kind]: figure });
    }
  }
  return { times: [...times.values()], others: found.filter((figure) => !figure.metric.includes(", ")) };
}
