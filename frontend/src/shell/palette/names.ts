// Names of the trace that match what is typed, and its steps; a report finds what it carries.

import type { Cell, Data, Page } from "../../data/api.ts";
import { valueAt } from "../../data/table.ts";
import { timelineLinkParameters } from "../../parts/data/timeline-link.ts";
import { loadTable } from "../../parts/data/full-table.ts";
import { STEP_COLUMNS, stepName, stepSpan } from "../../parts/steps/stepspan.ts";
import { go } from "../../route.ts";
import { countedText, timeText } from "../../units.ts";
import type { Entry, EntryKind } from "./entries.ts";
import { placeText } from "../../parts/text/place.ts";

const MOST_NAMES = 40;
const MOST_LINES = 8;
const MOST_STEPS = 2000;

/** Categories that the panel Operators lists; other slices are shown in the timeline. */
const OF_OPERATORS: ReadonlySet<string> = new Set(["cpu_op", "user_annotation"]);

/** The steps of a trace; none if it has no marks. */
export async function stepEntries(data: Data, trace: string): Promise<Entry[]> {
  const steps = await loadTable(data, trace, "steps", {}, { columns: STEP_COLUMNS }, MOST_STEPS);
  return Array.from({ length: steps.rows }, (_, row): Entry[] => {
    const span = stepSpan(steps, row);
    const name = stepName(steps, row);
    if (span === null || name === "recording") return [];
    const time = steps.columns["time"]?.[row];
    return [{
      id: `step ${row}`, kind: "step", title: `Step ${name}`, ...(typeof time === "number" ? { detail: timeText(time) } : {}),
      run: () => go("timeline", span),
    }];
  }).flat();
}

/** Operators, kernels, other slices and lines whose names contain a text. */
export async function namedEntries(data: Data, trace: string, text: string): Promise<Entry[]> {
  const asked = await Promise.allSettled([
    data.inline ? table(data, trace, "operators", text) : slices(data, trace, text),
    table(data, trace, "kernels", text),
    lines(data, trace, text),
  ]);
  // a report carries some of the tables, and a trace may lack what others need
  const found = asked.flatMap((one) => (one.status === "fulfilled" ? one.value : []));
  return [...new Map(found.map((entry) => [entry.id, entry])).values()];
}

async function slices(data: Data, trace: string, text: string): Promise<Entry[]> {
  const page = await data.page(trace, "matches", { text, by: "name" }, { from: 0, rows: MOST_NAMES });
  return rowsOf(page).flatMap((valueOf): Entry[] => {
    const [name, category] = [String(valueOf("name")), String(valueOf("category"))];
    if (category === "kernel") return []; // under the names by which the panel Kernels lists them
    const isOperator = OF_OPERATORS.has(category);
    const [start = 0, duration = 0, slice] = [valueOf("start"), valueOf("duration"), valueOf("id")].map(Number);
    const kind: EntryKind = isOperator ? "operator" : "slice";
    const run = isOperator
      ? () => go("operators", { find: name })
      : () => go("timeline", timelineLinkParameters(start, duration, slice));
    return [{ id: `${kind} ${category} ${name}`, kind, title: name, detail: costText(valueOf("count"), valueOf("total")), run }];
  });
}

/** Where each panel has names and times. */
const COLUMNS = {
  operators: { kind: "operator", name: "name", total: "cpu_time_total" },
  kernels: { kind: "kernel", name: "what", total: "total" },
} as const;

async function table(data: Data, trace: string, view: keyof typeof COLUMNS, text: string): Promise<Entry[]> {
  const page = await data.page(trace, view, {}, { find: text, from: 0, rows: MOST_NAMES });
  const { kind, name, total } = COLUMNS[view];
  const sums = new Map<string, { count: number; total: number }>(); // kernels of one template are several rows
  for (const valueOf of rowsOf(page)) {
    const title = String(valueOf(name));
    const { count, total: time } = sums.get(title) ?? { count: 0, total: 0 };
    sums.set(title, { count: count + Number(valueOf("count")), total: time + Number(valueOf(total)) });
  }
  return [...sums].map(([title, sum]) => ({
    id: `${kind} ${title}`, kind, title, detail: costText(sum.count, sum.total), run: () => go(view, { find: title }),
  }));
}

async function lines(data: Data, trace: string, text: string): Promise<Entry[]> {
  const page = await data.page(trace, "lines", {}, { find: text, from: 0, rows: MOST_LINES });
  return rowsOf(page).flatMap((valueOf): Entry[] => {
    const [file, line, code] = [valueOf("file"), valueOf("line"), valueOf("function")];
    if (typeof file !== "string" || typeof line !== "number") return [];
    const detail = typeof code === "string" ? code : "";
    const run = () => go("lines", { file, line: String(line) });
    return [{ id: `line ${file} ${line}`, kind: "line", title: placeText(file, line), detail, run }];
  });
}

function rowsOf(page: Page): ((column: string) => Cell)[] {
  return Array.from({ length: page.rows }, (_, row) => (column: string) => {
    const values = page.columns[column];
    return values === undefined ? null : valueAt(values, row);
  });
}

function costText(count: Cell, total: Cell): string {
  const time = typeof total === "number" ? timeText(total) : "";
  return [typeof count === "number" ? countedText(count, "call") : "", time].filter(Boolean).join(", ");
}
