// The costliest kernels, operators and lines of a trace, and why its devices idle, as short lists.

import type { Data, Filter, Options, ViewSpec } from "../../../data/api.ts";
import { labelOfValue, labelsOf } from "../../../parts/data/labels.ts";
import { plain } from "../../../parts/text/plain.ts";
import { number, textAt, loadTable } from "../../../parts/data/full-table.ts";
import type { FullTable } from "../../../parts/data/full-table.ts";
import { link } from "../../../route.ts";
import { distinctNames } from "./names.ts";
import { placeText } from "../../../parts/text/place.ts";

export const SHOWN = 4;
/** Smallest share that is not written as 0.0 %; what has less is no answer to what takes the time. */
const LEAST = 0.0005;
/** The longest place of a line that fits on one row. */
const LONGEST_PLACE = 34;

export interface Entry {
  name: string;
  title: string;
  href: string;
  time: number;
  share: number | null;
}

export interface Listed {
  entries: Entry[];
  /** The sum of the shares of all rows, where that says something. */
  whole: number | null;
  lacks: string[];
}

/** What a list is of: the view, the column of time, and of what the shares are. */
export interface Asking {
  view: string;
  title: string;
  /** The words for time and share. */
  what: string;
  all: string;
  load: (data: Data, trace: string) => Promise<Listed>;
}

/** Kernels by their total time. */
const KERNELS: Omit<Asking, "all"> = {
  view: "kernels",
  title: "Top kernels",
  what: "whole recording, share of kernel time",
  load: async (data, trace) => {
    const table = await top(data, trace, "kernels", "total");
    const names = distinctNames(rowsOf(table).map((row) => {
      const full = textAt(table, "name", row) ?? "";
      return { short: textAt(table, "what", row) ?? full, full };
    }));
    return listed(table, "total", "share", (row) => named(table, row, "kernels", "total", [], names[row]));
  },
};

export function kernels(): Asking {
  return { ...KERNELS, all: link("kernels", { sort: "-total" }) };
}

/** Operators by their self time: on the device where there is one. */
export function operators(hasDevice: boolean): Asking {
  const time = hasDevice ? "self_device_time_total" : "self_cpu_time_total";
  const share = hasDevice ? "self_device_share" : "self_cpu_share";
  const where: Filter[] = [{ column: "kind", op: "is", value: "operator" }];
  return {
    view: "operators",
    title: "Operators with most self time",
    what: hasDevice ? "whole recording, share of device time" : "whole recording, share of CPU time",
    all: link("operators", { sort: `-${time}` }),
    load: async (data, trace) => {
      const table = await top(data, trace, "operators", time, where);
      return listed(table, time, share, (row) => named(table, row, "operators", time, where));
    },
  };
}

/** Lines by the device time that they launch, else by their CPU time; shares are of the sum. */
export function lines(hasDevice: boolean): Asking {
  const time = hasDevice ? "device_time" : "self_cpu_time";
  return {
    view: "lines",
    title: "Lines",
    what: hasDevice ? "whole recording, share of device time" : "whole recording, share of CPU time",
    all: link("lines"),
    load: async (data, trace) => {
      const table = await top(data, trace, "lines", time);
      return listed(table, time, null, (row) => lineOf(table, row));
    },
  };
}

/** Why devices idle, by cause; those of several devices are added up. */
export async function idleCauses(data: Data, trace: string, spec: ViewSpec | undefined): Promise<Listed> {
  const table = await loadTable(data, trace, "idle", { by: "cause", counted: true });
  const labels = labelsOf(spec, "cause");
  const devices = new Set(table.columns["device"] ?? []).size || 1;
  const causes = new Map<string, { time: number; share: number }>();
  for (const row of rowsOf(table)) {
    const cause = textAt(table, "cause", row) ?? "";
    const { time, share } = causes.get(cause) ?? { time: 0, share: 0 };
    const more = { time: number(table, "duration", row) ?? 0, share: (number(table, "share", row) ?? 0) / devices };
    causes.set(cause, { time: time + more.time, share: share + more.share });
  }
  const whole = [...causes.values()].reduce((sum, { share }) => sum + share, 0);
  const entries = [...causes].filter(([, { time, share }]) => time > 0 && share >= LEAST).map(([cause, { time, share }]) => {
    const label = labelOfValue(labels, cause);
    const where = JSON.stringify([{ column: "cause", op: "is", value: cause }]);
    // Gaps below the threshold are in the sums alone: only these have a row for them.
    const by = cause === "kernel_gap" ? "cause" : "gap";
    return { name: label.text, title: label.doc, href: link("idle", { by, counted: "true", where }), time, share };
  });
  entries.sort((one, other) => other.time - one.time);
  return { entries: entries.slice(0, SHOWN), whole, lacks: table.lacks };
}

/** One more than is shown, since the row without a line is left out. */
function top(data: Data, trace: string, view: string, time: string, where: Filter[] = [], options: Options = {}) {
  return loadTable(data, trace, view, options, { sort: `-${time}`, where }, SHOWN + 1);
}

function rowsOf(table: FullTable): number[] {
  return Array.from({ length: table.rows }, (_, row) => row);
}

/** `share` is the column of the share; null: the share of the sum. */
function listed(
  table: FullTable, time: string, share: string | null, entry: (row: number) => Pick<Entry, "name" | "title" | "href"> | null,
): Listed {
  const sum = table.totals[time] ?? null;
  const entries = rowsOf(table).flatMap((row): Entry[] => {
    const shown = entry(row);
    const much = number(table, time, row) ?? 0;
    const part = share === null ? (sum ? much / sum : null) : number(table, share, row);
    if (shown === null || much === 0 || (part ?? 1) < LEAST) return [];
    return [{ ...shown, time: much, share: part }];
  });
  return { entries: entries.slice(0, SHOWN), whole: null, lacks: table.lacks };
}

function lineOf(table: FullTable, row: number) {
  const file = textAt(table, "file", row);
  const line = number(table, "line", row);
  const inside = textAt(table, "function", row);
  if (file === null) return null;
  const at = placeText(file, line);
  return {
    name: shortened(at),
    title: plain(inside === null ? at : `${at} in ${inside}`),
    href: link("lines", line === null ? { file } : { file, line: String(line) }),
  };
}

/** A name, and the link to its row. */
function named(table: FullTable, row: number, panel: string, time: string, where: Filter[], short?: string) {
  const name = textAt(table, "name", row) ?? "";
  const narrowed = JSON.stringify([...where, { column: "name", op: "is", value: name }]);
  return { name: plain(short ?? name), title: plain(name), href: link(panel, { sort: `-${time}`, where: narrowed }) };
}

/** The last two parts of a file's path, or the last if these are long. */
function shortened(place: string): string {
  const parts = place.split("/");
  const short = parts.length > 3 ? `…/${parts.slice(-2).join("/")}` : place;
  return plain(short.length > LONGEST_PLACE && parts.length > 1 ? `…/${parts.at(-1)}` : short);
}
