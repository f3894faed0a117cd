// Loads what the timeline shows, source by source: what fails or takes long does not hold up the rest.

import type { Page } from "../../data/api.ts";
import type { Span } from "../../draw/span.ts";
import type { PanelProps } from "../panel.ts";
import { loadSteps } from "./input/steps.ts";
import { rowsOf } from "./input/url-parameters.ts";
import { labelOf, parseAlignment, shiftOf } from "./tracks/beside.ts";
import { parseRankKeys, shownRanks } from "./tracks/multi-rank.ts";
import { queriesOf } from "./tracks/query-tracks.ts";
import { BESIDE, FIRST_QUERY, firstSource, shownTime } from "./tracks/sources.ts";
import type { Source } from "./tracks/sources.ts";
import type { Group } from "./tracks/tracks.ts";

/** Sources, and the list of tracks of each. */
export interface Listed {
  sources: Source[];
  pages: Page[];
}

const NOT_IN_REPORT = "this report does not carry it; `selftime compare BEFORE AFTER -o FILE.html` writes one of two traces";

export const NOTHING: Listed = { sources: [], pages: [] };

/** A query that cannot be shown, and why. */
export interface FailedQuery {
  query: string;
  error: string;
}

export interface ListedTraces extends Listed {
  /** Ranks that cannot be shown. */
  left: string[];
  /** An option of the view: what the rows of streams are. */
  rows: { lanes?: "name" };
}

/** The trace, and other ranks of its job. */
export async function loadTraces({ data, trace, params }: PanelProps): Promise<ListedTraces> {
  const keys = parseRankKeys(params["with"]);
  const { ranks, left } =
    keys.length === 0 ? { ranks: [firstSource(trace.id)], left: [] } : shownRanks(await data.job(trace.id), trace.id, keys);
  const rows = rowsOf(params["rows"], data.inline);
  const pages = await Promise.all(ranks.map((one) => data.page(one.trace, "timeline", { what: "tracks", ...rows }, {})));
  return { sources: ranks, pages, left, rows };
}

/** The second trace; nothing if none is chosen. */
export async function loadBeside({ data, trace, traces, params }: PanelProps): Promise<Listed> {
  const id = params["beside"];
  if (id === undefined) return NOTHING;
  const other = traces.find((one) => one.id === id);
  if (other === undefined) throw new Error(data.inline ? NOT_IN_REPORT : "the second trace is no longer here; choose another one");
  const rows = rowsOf(params["rows"], data.inline);
  const page = await data.page(id, "timeline", { what: "tracks", ...rows }, {});
  const alignment = parseAlignment(params["align"]);
  const own = alignment.by === "step" ? await loadSteps(data, trace.id) : [];
  const others = await loadSteps(data, id).catch((error: unknown) => {
    if (alignment.by === "step") throw error;
    return []; // without steps there are none to draw
  });
  const source = { at: BESIDE, label: labelOf(other), trace: id, stretch: 1, shift: shiftOf(alignment, own, others) };
  const shown = (time: number) => shownTime(source, time);
  const steps = others.map((step) => ({ ...step, start: shown(step.start), end: shown(step.end) }));
  return { sources: [{ ...source, steps }], pages: [page] };
}

/** The queries that are shown as tracks. */
export async function loadQueries({ data, trace, params }: PanelProps): Promise<Listed & { failed: FailedQuery[] }> {
  const found: Listed & { failed: FailedQuery[] } = { sources: [], pages: [], failed: [] };
  for (const [number, query] of queriesOf(params["track"]).entries()) { // one by one: the server answers few at a time
    try {
      found.pages.push(await data.queryTrack(trace.id, query, { what: "tracks" }, {}));
      found.sources.push({ ...firstSource(trace.id), at: FIRST_QUERY + number, query });
    } catch (error) {
      found.failed.push({ query, error: error instanceof Error ? error.message : String(error) });
    }
  }
  return found;
}

/** Margin before the first and after the last slice, as a share. */
const ROOM = 0.01;

/** The time that the timeline shows at most; null without any slice, mark or sample. */
export function limitsOf(groups: readonly Group[]): Span | null {
  const all = groups.flatMap((group) => group.tracks);
  // the recorder is at work long before and after the program is
  const program = all.filter((track) => track.kind !== "profiler");
  const tracks = program.some((track) => track.end > track.start) ? program : all;
  const from = Math.min(...tracks.map((track) => track.start).filter(Number.isFinite));
  const to = Math.max(...tracks.map((track) => track.end).filter(Number.isFinite));
  if (!(to >= from)) return null;
  const room = Math.max((to - from) * ROOM, 50);
  return { from: Math.floor(from - room), to: Math.ceil(to + room) };
}
