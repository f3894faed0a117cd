// Moments worth a look: gaps of devices, waits of the host, slow steps, each with its reason.

import type { Data, Page, ViewSpec } from "../../../data/api.ts";
import type { Span } from "../../../draw/span.ts";
import { labelOfValue, labelsOf } from "../../../parts/data/labels.ts";
import { timeText } from "../../../units.ts";
import { cellReader } from "../tiles/cell-reader.ts";
import type { CellReader } from "../tiles/cell-reader.ts";

export type MomentKind = "gap" | "wait" | "slow";

export interface Moment extends Span {
  kind: MomentKind;
  /** Why, as words after "because of". */
  reason: string;
  /** What the reason means, if its name does not say it. */
  doc: string;
  file: string | null;
  line: number | null;
  /** The slice that it is, if it is one. */
  slice: number | null;
}

interface Source {
  view: string;
  title: string;
  key: string;
  columns: readonly string[];
  /** The moment in a row; null where it is none. */
  read: (read: CellReader, row: number, spec: ViewSpec | undefined) => Omit<Moment, "kind" | "file" | "line"> | null;
}

/** The most of a kind, the longest of them. */
export const MOST = 200;

export const SOURCES: Record<MomentKind, Source> = {
  gap: {
    view: "idle",
    title: "gap of the device",
    key: "i",
    columns: ["cause", "duration", "start", "file", "line"],
    read: (read, row, spec) => {
      const label = labelOfValue(labelsOf(spec, "cause"), read.text("cause", row));
      return { ...spanOf(read, row, "duration"), reason: `${lasts(read, row, "duration")} idle: ${label.text}`, doc: label.doc, slice: null };
    },
  },
  wait: {
    view: "syncs",
    title: "wait of the host",
    key: "h",
    columns: ["wait", "start", "kind", "call", "file", "line", "idle_after", "id"],
    read: (read, row, spec) => {
      const { text, doc } = labelOfValue(labelsOf(spec, "kind"), read.text("kind", row));
      const after = read.number("idle_after", row);
      const idle = after > 0 ? `; the device idles for ${timeText(after)} after it` : "";
      return { ...spanOf(read, row, "wait"), reason: `${lasts(read, row, "wait")} ${text}${idle}`, doc, slice: read.number("id", row) };
    },
  },
  slow: {
    view: "steps",
    title: "slow step",
    key: "x",
    columns: ["step", "start", "host_time", "excess", "longer_in"],
    read: (read, row, spec) => {
      const excess = read.number("excess", row);
      if (Number.isNaN(excess)) return null;
      const { text, doc } = labelOfValue(labelsOf(spec, "longer_in"), read.text("longer_in", row));
      const reason = `step ${read.number("step", row)} takes ${timeText(excess)} more than the median, most in ${text}`;
      return { ...spanOf(read, row, "host_time"), reason, doc, slice: null };
    },
  },
};

export const MOMENT_KINDS = Object.keys(SOURCES) as MomentKind[];

function spanOf(read: CellReader, row: number, column: string): Span {
  const start = read.number("start", row);
  return { from: start, to: start + (read.number(column, row) || 0) };
}

function lasts(read: CellReader, row: number, column: string): string {
  return timeText(read.number(column, row) || 0);
}

/** The moments of a kind in order of time. */
export async function loadMoments(data: Data, trace: string, views: ReadonlyMap<string, ViewSpec>, kind: MomentKind): Promise<Moment[]> {
  const { view, columns } = SOURCES[kind];
  const page = await data.page(trace, view, {}, { columns: [...columns], ...(kind === "slow" ? {} : { rows: MOST }) });
  return momentsOf(page, kind, views.get(view));
}

export function momentsOf(page: Page, kind: MomentKind, spec: ViewSpec | undefined): Moment[] {
  const read = cellReader(page);
  const found: Moment[] = [];
  for (let row = 0; row < page.rows; row++) {
    const moment = SOURCES[kind].read(read, row, spec);
    if (moment === null) continue;
    const line = read.number("line", row);
    found.push({ ...moment, kind, file: read.text("file", row) || null, line: Number.isNaN(line) ? null : line });
  }
  return found.sort((one, other) => one.from - other.from);
}

/** The next or previous moment, from one or from the middle of what is seen. */
export function momentBeside(moments: readonly Moment[], from: Moment | null, span: Span, by: 1 | -1): Moment | undefined {
  const middle = (span.from + span.to) / 2;
  const isSeen = from !== null && from.from < span.to && from.to > span.from;
  const time = isSeen ? from.from : middle;
  if (by > 0) return moments.find((one) => one.from > time || (!isSeen && one.from === time));
  return moments.findLast((one) => one.from < time);
}

/** In the address: `gap.188104000`. */
export function momentText(moment: Moment): string {
  return `${moment.kind}.${Math.round(moment.from)}`;
}

export function readMoment(text: string | undefined): { kind: MomentKind; from: number } | null {
  const [, word, from] = /^([a-z]+)\.(-?\d+)$/.exec(text ?? "") ?? [];
  const kind = MOMENT_KINDS.find((known) => known === word);
  return kind === undefined ? null : { kind, from: Number(from) };
}
