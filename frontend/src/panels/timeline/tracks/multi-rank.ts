// Several ranks in one timeline: converts ids and times of each rank's trace to those of the timeline,
// whose clock is that of the first trace.

import type { TraceClock, Data, Job, Page } from "../../../data/api.ts";
import { cells, loadTable } from "../../../parts/data/full-table.ts";
import type { Link } from "../input/relations.ts";
import type { Flow, Slice } from "../drawing/viewport.ts";
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
export function shownRanks(job: Job, trace: string, keys: readonly number[]): { ranks: ShownRank[]; left: string[] } {
  const own = job.ranks.find((rank) => rank.traces.some((one) => one.trace === trace));
  const base = own?.traces.find((one) => one.trace === trace);
  const ranks: ShownRank[] = [{ ...singleRank(trace), label: own?.label ?? "" }];
  const left: string[] = [];
  for (const rank of job.ranks) {
    if (!keys.includes(rank.key) || rank === own) continue;
    const placed = base === undefined ? null : nearest(rank.traces, base);
    if (placed === null) left.push(rank.label);
    else if (ranks.length < MOST_RANKS) ranks.push({ at: ranks.length, label: rank.label, ...placed });
  }
  return { ranks, left };
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

export function shownTime(rank: ShownRank, time: number): number {
  return time * rank.stretch + rank.shift;
}

export function ownTime(rank: ShownRank, time: number): number {
  return (time - rank.shift) / rank.stretch;
}

export function shownId(rank: ShownRank, id: number): number {
  return id < 0 ? id : rank.at * SLICES + id;
}

export function ownId(id: number): number {
  return id < 0 ? id : id % SLICES;
}

export function placeOfId(id: number): number {
  return id < 0 ? 0 : Math.floor(id / SLICES);
}

/** Counters of a rank share one negative id. */
export function shownTrack(rank: ShownRank, track: number): number {
  return track < 0 ? -1 - rank.at : rank.at * TRACKS + track;
}

export function ownTrack(track: number): number {
  return track < 0 ? -1 : track % TRACKS;
}

export function placeOfTrack(track: number): number {
  return track < 0 ? -1 - track : Math.floor(track / TRACKS);
}

export function shownSlice(rank: ShownRank, slice: Slice): Slice {
  return {
    ...slice,
    id: shownId(rank, slice.id),
    track: shownTrack(rank, slice.track),
    start: shownTime(rank, slice.start),
    end: shownTime(rank, slice.end),
  };
}

export function shownFlow(rank: ShownRank, flow: Flow): Flow {
  return {
    ...flow,
    id: shownId(rank, flow.id),
    to: shownId(rank, flow.to),
    start: shownTime(rank, flow.start),
    toTime: shownTime(rank, flow.toTime),
    track: shownTrack(rank, flow.track),
    toTrack: shownTrack(rank, flow.toTrack),
  };
}

export function shownLink(rank: ShownRank, link: Link): Link {
  return { ...link, slice: shownId(rank, link.slice), start: shownTime(rank, link.start) };
}

/** The groups of all ranks; with several ranks only streams are open. */
export function groupsOf(ranks: readonly ShownRank[], pages: readonly Page[]): Group[] {
  return ranks.flatMap((rank, at) => {
    const page = pages[at];
    const groups = page === undefined ? [] : groupTracks(page);
    if (ranks.length === 1) return groups;
    const counters = (group: Group) => Number(group.tracks.every((track) => track.id < 0));
    const ordered = [...groups].sort((one, other) => counters(one) - counters(other));
    return ordered.map((group, number) => ({ ...shownGroup(rank, group, number), leads: number === 0 && rank.at > 0 }));
  });
}

function shownGroup(rank: ShownRank, group: Group, number: number): Group {
  const tracks = group.tracks.map((track, place) => ({
    ...track,
    id: shownTrack(rank, track.id),
    key: track.id < 0 ? `c${rank.at * KEYS + place}` : `t${shownTrack(rank, track.id)}`,
    start: shownTime(rank, track.start),
    end: shownTime(rank, track.end),
    open: track.open && track.kind === "device",
  }));
  const folded = tracks.every((track) => track.id < 0);
  return { ...group, key: `g${rank.at * KEYS + number}`, tracks, of: rank.label, at: rank.at, folded };
}

/** Finds the slices of the same collective on different ranks. */
export class SameCollectives {
  readonly #numbers = new Map<number, number>();
  readonly #slices = new Map<number, number[]>();

  /** Loads the collectives of each rank. */
  async learn(data: Data, ranks: readonly ShownRank[]): Promise<void> {
    const [first] = ranks;
    if (first === undefined || ranks.length < 2) return;
    for (const rank of ranks) {
      const where = [{ column: "label", op: "is" as const, value: rank.label }];
      const table = await loadTable(data, first.trace, "arrivals", {}, { columns: ["number", "id"], where });
      this.take(rank, cells({ values: [...(table.columns["id"] ?? [])] }), [...(table.columns["number"] ?? [])]);
    }
  }

  /** The slices of one rank's collectives, with their number in the job. */
  take(rank: ShownRank, ids: readonly unknown[], numbers: readonly unknown[]): void {
    for (const [row, id] of ids.entries()) {
      const number = numbers[row];
      if (typeof id !== "number" || typeof number !== "number") continue;
      this.#numbers.set(shownId(rank, id), number);
      this.#slices.set(number, [...(this.#slices.get(number) ?? []), shownId(rank, id)]);
    }
  }

  /** The slices of the same collective on other ranks. */
  of(id: number): readonly number[] {
    const number = this.#numbers.get(id);
    if (number === undefined) return [];
    return (this.#slices.get(number) ?? []).filter((other) => other !== id);
  }
}
