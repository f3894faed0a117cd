// The view `lines` by file and line, ranked by cost (pure).

import { labelOfValue } from "../../parts/data/labels.ts";
import type { Labels } from "../../parts/data/labels.ts";
import type { FullTable } from "../../parts/data/full-table.ts";
import { number, textAt } from "../../parts/data/full-table.ts";

export type Metric = "host" | "device";

/** The cost of a line, summed over rows of the view. */
export interface Cost {
  file: string;
  /** Null where only the file is known. */
  line: number | null;
  function: string | null;
  how: string[];
  device: number;
  host: number;
  waits: number;
  totalDevice: number | null;
  totalHost: number | null;
  backwardDevice: number;
  backwardHost: number;
  recomputeDevice: number;
  recomputeHost: number;
  python: number;
  operators: number;
  memory: number;
}

export interface FileCost {
  file: string;
  costs: Cost[];
  device: number;
  host: number;
  waits: number;
}

export interface Costs {
  metric: Metric;
  files: FileCost[];
  /** All lines, the costliest first. */
  ranked: Cost[];
  /** The cost without a known line. */
  elsewhere: { device: number; host: number } | null;
  all: { device: number; host: number };
  hasDevice: boolean;
  hasMemory: boolean;
}

/** The time by which lines and files are ranked: host time without waits, in ns. */
export function heat(cost: { device: number; host: number; waits: number }, metric: Metric): number {
  return metric === "device" ? cost.device : cost.host - cost.waits;
}

export function costsOf(table: FullTable, asked: string | undefined): Costs {
  const rows = Array.from({ length: table.rows }, (_, row) => costAt(table, row));
  const known = merged(rows.filter((row): row is Cost => row !== null));
  const all = { device: summed(table, "device_time"), host: summed(table, "self_cpu_time") };
  const hasDevice = all.device > 0;
  const metric = asked === "host" || asked === "device" ? asked : hasDevice ? "device" : "host";
  const nowhere = rows.findIndex((row) => row === null);
  const elsewhere = nowhere < 0 ? null : {
    device: number(table, "device_time", nowhere) ?? 0,
    host: number(table, "self_cpu_time", nowhere) ?? 0,
  };
  const other: Metric = metric === "device" ? "host" : "device";
  const hotter = (a: Cost | FileCost, b: Cost | FileCost) =>
    heat(b, metric) - heat(a, metric) || heat(b, other) - heat(a, other);
  const ranked = known.toSorted(hotter);
  const files = byFile(ranked).toSorted(hotter);
  return { metric, files, ranked, elsewhere, all, hasDevice, hasMemory: known.some((cost) => cost.memory !== 0) };
}

function summed(table: FullTable, name: string): number {
  let sum = 0;
  for (const value of table.columns[name] ?? []) sum += typeof value === "number" ? value : 0;
  return sum;
}

function costAt(table: FullTable, row: number): Cost | null {
  const file = textAt(table, "file", row);
  if (file === null) return null;
  const amount = (name: string) => number(table, name, row) ?? 0;
  return {
    file,
    line: number(table, "line", row),
    function: textAt(table, "function", row),
    how: [textAt(table, "how", row) ?? "unknown"],
    device: amount("device_time"),
    host: amount("self_cpu_time"),
    waits: amount("waits"),
    totalDevice: number(table, "total_device_time", row),
    totalHost: number(table, "total_cpu_time", row),
    backwardDevice: amount("backward_device_time"),
    backwardHost: amount("backward_cpu_time"),
    recomputeDevice: amount("recompute_device_time"),
    recomputeHost: amount("recompute_cpu_time"),
    python: amount("python_time"),
    operators: amount("operators"),
    memory: amount("device_memory") + amount("cpu_memory"),
  };
}

const ADDED = [
  "device", "host", "waits", "backwardDevice", "backwardHost", "recomputeDevice", "recomputeHost",
  "python", "operators", "memory",
] as const;

/** Merges costs of a line: self times add up; totals overlap, so the larger counts. */
function merged(rows: readonly Cost[]): Cost[] {
  const lines = new Map<string, Cost>();
  for (const row of rows) {
    const key = `${row.line ?? ""} ${row.file}`;
    const known = lines.get(key);
    if (known === undefined) {
      lines.set(key, { ...row });
      continue;
    }
    for (const name of ADDED) known[name] += row[name];
    known.totalDevice = larger(known.totalDevice, row.totalDevice);
    known.totalHost = larger(known.totalHost, row.totalHost);
    known.how = [...new Set([...known.how, ...row.how])];
    known.function ??= row.function;
  }
  return [...lines.values()];
}

function larger(a: number | null, b: number | null): number | null {
  return a === null ? b : b === null ? a : Math.max(a, b);
}

function byFile(costs: readonly Cost[]): FileCost[] {
  const files = new Map<string, FileCost>();
  for (const cost of costs) {
    const file = files.get(cost.file) ?? { file: cost.file, costs: [], device: 0, host: 0, waits: 0 };
    files.set(cost.file, file);
    file.costs.push(cost);
    file.device += cost.device;
    file.host += cost.host;
    file.waits += cost.waits;
  }
  return [...files.values()];
}

/** The line to show: from the URL, or the costliest. */
export function initialLine(costs: Costs, file: string | undefined, line: string | undefined): { file: string; line: number | null } | null {
  const named = file === undefined ? undefined : found(costs, file);
  if (line !== undefined && file !== undefined) return { file: named ?? file, line: Number(line) || null };
  const hottest = costs.ranked.find((cost) => named === undefined || cost.file === named);
  if (hottest === undefined) return file === undefined ? null : { file, line: null };
  return { file: hottest.file, line: hottest.line };
}

/** The file of that name; another view may know it by a longer or a shorter one. */
function found(costs: Costs, file: string): string | undefined {
  const names = costs.files.map((known) => known.file);
  if (names.includes(file)) return file;
  const alike = names.filter((known) => known.endsWith(`/${file}`) || file.endsWith(`/${known}`));
  return alike.length === 1 ? alike[0] : undefined;
}

/** The line `by` ranks cheaper, or costlier if negative. */
export function nextHot(costs: Costs, at: Cost | undefined, by: number): Cost | undefined {
  const warm = costs.ranked.filter((cost) => cost.line !== null && heat(cost, costs.metric) > 0);
  const place = at === undefined ? -1 : warm.indexOf(at);
  if (place < 0) return warm[0];
  return warm[place + by];
}

/** How the line is known, in one word for the gutter. */
export function howMark(how: readonly string[], labels: Labels): string {
  return [...new Set(how.map((known) => labelOfValue(labels, known).text))].join(", ");
}

/** The file's own name, and the folder it is in. */
export function splitPath(file: string): { name: string; folder: string } {
  const at = file.lastIndexOf("/");
  return { name: file.slice(at + 1), folder: at < 0 ? "" : file.slice(0, at) };
}
