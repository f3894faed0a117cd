// A selected time span in the address, with the conditions that it sets on the table of blocks.

import type { Filter } from "../../data/api.ts";
import type { Span } from "../../draw/span.ts";
import { wordOf } from "../../draw/span.ts";

const BELOW = ["holders", "flame", "lifetimes", "blocks", "operators"] as const;
export type Below = (typeof BELOW)[number];
type Params = Readonly<Record<string, string>>;

export function belowOf(word: string | undefined): Below {
  return BELOW.find((known) => known === word) ?? "holders";
}

/** The instant whose memory is shown: a chosen one, or the peak of a stretch or of all. */
export interface When {
  /** Options of the views that tell of an instant. */
  options: Record<string, number>;
  words: string;
}

export function whenOf(brush: Span | null, at: number | null): When {
  if (at !== null) return { options: { at: Math.round(at) }, words: "at the chosen instant" };
  if (brush === null) return { options: {}, words: "at the peak" };
  return { options: { start: Math.max(Math.floor(brush.from), 0), end: Math.ceil(brush.to) }, words: "at the peak of the chosen stretch" };
}

/** URL parameters of a selected time span, with filters of the table of blocks. */
export function brushed(params: Params, brush: Span | null, below: Below): Record<string, string | undefined> {
  return { stretch: wordOf(brush), ...conditions(params, brush, below, params["ends"]) };
}

export function conditions(params: Params, brush: Span | null, below: Below, ends: string | undefined): Record<string, string | undefined> {
  if (below !== "blocks") return {};
  let kept: Filter[] = [];
  try {
    kept = (JSON.parse(params["where"] ?? "[]") as Filter[]).filter((one) => one.column !== "allocated" && one.column !== "released");
  } catch {
    // written by hand, and not to be read: the stretch's own conditions stand alone
  }
  const column = ends === "released" ? "released" : "allocated";
  const own: Filter[] = brush === null ? [] : [
    { column, op: "from", value: String(Math.floor(brush.from)) },
    { column, op: "to", value: String(Math.ceil(brush.to)) },
  ];
  const where = [...kept, ...own];
  return { where: where.length === 0 ? undefined : JSON.stringify(where), row: undefined };
}
