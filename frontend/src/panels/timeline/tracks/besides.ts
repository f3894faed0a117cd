// Several ranks in one timeline: converts ids and times of each rank's trace to those of the timeline,
// whose clock is that of the first trace.

import type { TraceClock, Data, Job, Page } from "../../../data/api.ts";
import { cells, loadTable } from "../../../parts/data/whole.ts";
import type { Link } from "../input/relations.ts";
import type { Flow, Slice } from "../drawing/sight.ts";
import { groupTracks } from "./tracks.ts";
import type { Group } from "./tracks.ts";

/** The most ranks that are shown at once. */
export const MOST_RANKS = 8;
/** Ranges of slice, track and counter ids per rank. */
const SLICES = 2 ** 32;
const TRACKS = 2 ** 20;
const KEYS = 1_000;

/** A rank in the timeline. */
export interface ShownRank {
  /** Position in the timeline; 0 is the first trace, whose ids are unchanged. */
  at: number;
  label: string;
  trace: string;
  /** Times of its trace, multiplied by `stretch` plus `shift`, are times of the timeline. */
  stretch: number;
  shift: number;
}

/** The keys of ranks in the URL, such as `0.3.7`. */
export function parseRankKeys(text: string | undefined): number[] {
  const words = (text ?? "").split(".").filter((word) => /^\d{1,9}$/.test(word));
  return [...new Set(words.map(Number))].slice(0, MOST_RANKS - 1);
}

export function rankKeysText(keys: readonly number[]): string | undefined {
  return keys.length === 0 ? undefined : [...keys].sort((one, other) => one - other).join(".");
}

/** A timeline of a single trace. */
export function singleRank(trace: string): ShownRank {
  return { at: 0, label: "", trace, stretch: 1, shift: 0 };
}

/** The first trace and the chosen ranks; `left` lists ranks with an unknown clock. */
export function shownRanks(job: Job, trace: string, keys: readonly number[]): { besides: ShownRank[]; left: string[] } {
  const own = job.ranks.find((rank) => rank.traces.some((one) => one.trace === trace));
  const base = own?.traces.find((one) => one.trace === trace);
  const besides: ShownRank[] = [{ ...singleRank(trace), label: own?.label ?? "" }];
  const left: string[] = [];
  for (const rank of job.ranks) {
    if (!keys.includes(rank.key) || rank === own) continue;
    const placed = base === undefined ? null : nearest(rank.traces, base);
    if (placed === null) left.push(rank.label);
    else if (besides.length < MOST_RANKS) besides.push({ at: besides.length, label: rank.label, ...placed });
  }
  return { besides, left };
}

/** The recording of a rank whose start is closest to another's. */
function nearest(traces: readonly TraceClock[], base: TraceClock): Pick<ShownRank, "trace" | "stretch" | "shift"> | null {
  if (base.shift === null) return null;
  let found: { trace: string; stretch: number; shift: number } | null = null;
  for (const { trace, shift, drift } of traces) {
    if (shift === null) continue;
    const by = (shift - base.shift) / (1 + base.drift);
    if (found === null || Math.abs(by) < Math.abs(found.shift)) {
      found = { trace, stretch: (1 + drift) / (1 + base.drift), shift: by };
    }
  }
  return found;
}

export function shownTime(beside: ShownRank, time: number): number {
  return time * beside.stretch + beside.shift;
}

export function ownTime(beside: ShownRank, time: number): number {
  return (time - beside.shift) / beside.stretch;
}

export function shownId(beside: ShownRank, id: number): number {
  return id < 0 ? id : beside.at * SLICES + id;
}

export function ownId(id: number): number {
  return id < 0 ? id : id % SLICES;
}

export function placeOfId(id: number): number {
  return id < 0 ? 0 : Math.floor(id / SLICES);
}

/** Counters of a rank share one negative id. */
export function shownTrack(beside: ShownRank, track: number): number {
  return track < 0 ? -1 - beside.at : beside.at * TRACKS + track;
}

export function ownTrack(track: number): number {
  return track < 0 ? -1 : track % TRACKS;
}

export function placeOfTrack(track: number): number {
  return track < 0 ? -1 - track : Math.floor(track / TRACKS);
}

export function shownSlice(beside: ShownRank, slice: Slice): Slice {
  return {
    ...slice,
    id: shownId(beside, slice.id),
    track: shownTrack(beside, slice.track),
    start: shownTime(beside, slice.start),
    end: shownTime(beside, slice.end),
  };
}

export function shownFlow(beside: ShownRank, flow: Flow): Flow {
  return {
    ...flow,
    id: shownId(beside, flow.id),
    to: shownId(beside, flow.to),
    start: shownTime(beside, flow.start),
    toTime: shownTime(beside, flow.toTime),
    track: shownTrack(beside, flow.track),
    toTrack: shownTrack(beside, flow.toTrack),
  };
}

export function shownLink(beside: ShownRank, link: Link): Link {
  return { ...link, slice: shownId(beside, link.slice), start: shownTime(beside, link.start) };
}

/** The groups of all ranks; with several ranks only streams are open. */
export function groupsOf(besides: readonly ShownRank[], pages: readonly Page[]): Group[] {
  return besides.flatMap((beside, at) => {
    const page = pages[at];
    const groups = page === undefined ? [] : groupTracks(page);
    if (besides.length === 1) return groups;
    const counters = (group: Group) => Number(group.tracks.every((track) => track.id < 0));
    const ordered = [...groups].sort((one, other) => counters(one) - counters(other));
    return ordered.map((group, number) => ({ ...shownGroup(beside, group, number), leads: number === 0 && beside.at > 0 }));
  });
}

function shownGroup(beside: ShownRank, group: Group, number: number): Group {
  const tracks = group.tracks.map((track, place) => ({
    ...track,
    id: shownTrack(beside, track.id),
    key: track.id < 0 ? `c${beside.at * KEYS + place}` : `t${shownTrack(beside, track.id)}`,
    start: shownTime(beside, track.start),
    end: shownTime(beside, track.end),
    open: track.open && track.kind === "device",
  }));
  const folded = tracks.every((track) => track.id < 0);
  return { ...group, key: `g${beside.at * KEYS + number}`, tracks, of: beside.label, at: beside.at, folded };
}

/** Finds the slices of the same collective on different ranks. */
export class SameCollectives {
  readonly #numbers = new Map<number, number>();
  readonly #slices = new Map<number, number[]>();

  /** Loads the collectives of each rank. */
  async learn(data: Data, besides: readonly ShownRank[]): Promise<void> {
    const [first] = besides;
    if (first === undefined || besides.length < 2) return;
    for (const beside of besides) {
      const where = [{ column: "label", op: "is" as const, value: beside.label }];
      const table = await loadTable(data, first.trace, "arrivals", {}, { columns: ["number", "id"], where });
      this.take(beside, cells({ values: [...(table.columns["id"] ?? [])] }), [...(table.columns["number"] ?? [])]);
    }
  }

  /** The slices of one rank's collectives, with their number in the job. */
  take(beside: ShownRank, ids: readonly unknown[], numbers: readonly unknown[]): void {
    for (const [row, id] of ids.entries()) {
      const number = numbers[row];
      if (typeof id !== "number" || typeof number !== "number") continue;
      this.#numbers.set(shownId(beside, id), number);
      this.#slices.set(number, [...(this.#slices.get(number) ?? []), shownId(beside, id)]);
    }
  }

  /** The slices of the same collective on other ranks. */
  of(id: number): readonly number[] {
    const number = this.#numbers.get(id);
    if (number === undefined) return [];
    return (this.#slices.get(number) ?? []).filter((other) => other !== id);
  }
}
