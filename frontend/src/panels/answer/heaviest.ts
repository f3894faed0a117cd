// The costliest lines, operators and kernels of a trace.

import type { Data, Filter, Options } from "../../data/api.ts";
import { plain } from "../../parts/text/plain.ts";
import { number, textAt, loadTable } from "../../parts/data/full-table.ts";
import type { FullTable } from "../../parts/data/full-table.ts";
import { link } from "../../route.ts";

export const SHOWN = 5;

export interface Entry {
  name: string;
  title: string;
  href: string;
  time: number;
  share: number | null;
}

export interface Heaviest {
  title: string;
  /** The kind of time. */
  what: string;
  /** The panel with the complete table. */
  panel: string;
  entries: Entry[];
  lacks: string[];
}

interface Asking {
  view: string;
  title: string;
  what: string;
  /** The columns of the time and its share; without the latter, shares are of the sum. */
  time: string;
  share?: string;
  options?: Options;
  where?: Filter[];
  entry: (table: FullTable, row: number) => Pick<Entry, "name" | "title" | "href"> | null;
}

/** Returns lines and operators; kernels replace one that the recording lacks. */
export async function heaviest(data: Data, trace: string, hasDevice: boolean): Promise<Heaviest[]> {
  const asked = [lines(hasDevice), operators(hasDevice)].map((one) => list(data, trace, one));
  const found = await Promise.all(asked);
  if (!hasDevice || found.every((one) => one.lacks.length === 0)) return found;
  return [...found, await list(data, trace, KERNELS)];
}

async function list(data: Data, trace: string, asking: Asking): Promise<Heaviest> {
  const { view, title, what, time, share, options = {}, where = [], entry } = asking;
  // One more than shown, since the row without a line is left out.
  const table = await loadTable(data, trace, view, options, { sort: `-${time}`, where }, SHOWN + 1);
  const sum = table.totals[time] ?? null;
  const entries = Array.from({ length: table.rows }, (_, row): Entry[] => {
    const shown = entry(table, row);
    const much = number(table, time, row) ?? 0;
    if (shown === null || much === 0) return [];
    const part = share === undefined ? (sum ? much / sum : null) : number(table, share, row);
    return [{ ...shown, time: much, share: part }];
  });
  return { title, what, panel: view, entries: entries.flat().slice(0, SHOWN), lacks: table.lacks };
}

function lines(hasDevice: boolean): Asking {
  return {
    view: "lines",
    title: "Lines",
    what: hasDevice ? "device time" : "self CPU time",
    time: hasDevice ? "device_time" : "self_cpu_time",
    entry: (table, row) => {
      const file = textAt(table, "file", row);
      const line = number(table, "line", row);
      const inside = textAt(table, "function", row);
      if (file === null) return null;
      const at = line === null ? file : `${file}:${line}`;
      return {
        name: shortened(at),
        title: plain(inside === null ? at : `${at} in ${inside}`),
        href: link("lines", line === null ? { file } : { file, line: String(line) }),
      };
    },
  };
}

function operators(hasDevice: boolean): Asking {
  const time = hasDevice ? "self_device_time_total" : "self_cpu_time_total";
  const where: Filter[] = [{ column: "kind", op: "is", value: "operator" }];
  return {
    view: "operators",
    title: "Operators",
    what: hasDevice ? "self device time" : "self CPU time",
    time,
    share: hasDevice ? "self_device_share" : "self_cpu_share",
    where,
    entry: (table, row) => named(table, row, "operators", time, where),
  };
}

const KERNELS: Asking = {
  view: "kernels",
  title: "Kernels",
  what: "total time",
  time: "total",
  share: "share",
  entry: (table, row) => named(table, row, "kernels", "total", []),
};

/** A name, and the link to its row. */
function named(table: FullTable, row: number, panel: string, time: string, where: Filter[]) {
  const name = textAt(table, "name", row) ?? "";
  const narrowed = JSON.stringify([...where, { column: "name", op: "is", value: name }]);
  return { name: plain(name), title: plain(name), href: link(panel, { sort: `-${time}`, where: narrowed }) };
}

/** The last two parts of a file's path. */
function shortened(place: string): string {
  const parts = place.split("/");
  return plain(parts.length > 3 ? `…/${parts.slice(-2).join("/")}` : place);
}
