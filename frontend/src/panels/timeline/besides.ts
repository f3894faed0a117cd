// Ranks below one another: how the numbers and instants of each one's trace are those of the
// picture. Its clock is that of the trace that is shown first.

import type { Clocked, Data, Job, Page } from "../../api.ts";
import { cells, whole } from "../../parts/whole.ts";
import type { Link } from "./relations.ts";
import type { Flow, Slice } from "./sight.ts";
import { grouped } from "./tracks.ts";
import type { Group } from "./tracks.ts";

/** More ranks than this cannot be told apart at a glance. */
export const MOST_RANKS = 8;
/** Each rank has so many numbers of slices, of tracks and of counters to itself. */
const SLICES = 2 ** 32;
const TRACKS = 2 ** 20;
const KEYS = 1_000;

/** A rank of the picture. */
export interface Beside {
  /** Its place in the picture; 0 is the trace that is shown first, whose numbers are its own. */
  at: number;
  label: string;
  trace: string;
  /** An instant of its trace times `stretch` plus `shift` is one of the picture. */
  stretch: number;
  shift: number;
}

/** The keys of ranks that an address names: `0.3.7`. */
export function keysOf(text: string | undefined): number[] {
  const words = (text ?? "").split(".").filter((word) => /^\d{1,9}$/.test(word));
  return [...new Set(words.map(Number))].slice(0, MOST_RANKS - 1);
}

export function writtenKeys(keys: readonly number[]): string | undefined {
  return keys.length === 0 ? undefined : [...keys].sort((one, other) => one - other).join(".");
}

/** The shown trace alone. */
export function lone(trace: string): Beside {
  return { at: 0, label: "", trace, stretch: 1, shift: 0 };
}

/** The shown trace and the chosen ranks beside it; those whose clock is not known are left out. */
export function besidesOf(job: Job, trace: string, keys: readonly number[]): { besides: Beside[]; left: string[] } {
  const own = job.ranks.find((rank) => rank.traces.some((one) => one.trace === trace));
  const base = own?.traces.find((one) => one.trace === trace);
  const besides: Beside[] = [{ ...lone(trace), label: own?.label ?? "" }];
  const left: string[] = [];
  for (const rank of job.ranks) {
    if (!keys.includes(rank.key) || rank === own) continue;
    const placed = base === undefined ? null : nearest(rank.traces, base);
    if (placed === null) left.push(rank.label);
    else if (besides.length < MOST_RANKS) besides.push({ at: besides.length, label: rank.label, ...placed });
  }
  return { besides, left };
}

/** Of the recordings of a rank the one that begins nearest to another. */
function nearest(traces: readonly Clocked[], base: Clocked): Pick<Beside, "trace" | "stretch" | "shift"> | null {
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

export function shownTime(beside: Beside, time: number): number {
  return time * beside.stretch + beside.shift;
}

export function ownTime(beside: Beside, time: number): number {
  return (time - beside.shift) / beside.stretch;
}

export function shownId(beside: Beside, id: number): number {
  return id < 0 ? id : beside.at * SLICES + id;
}

export function ownId(id: number): number {
  return id < 0 ? id : id % SLICES;
}

export function placeOfId(id: number): number {
  return id < 0 ? 0 : Math.floor(id / SLICES);
}

/** Counters of each rank are one number below 0. */
export function shownTrack(beside: Beside, track: number): number {
  return track < 0 ? -1 - beside.at : beside.at * TRACKS + track;
}

export function ownTrack(track: number): number {
  return track < 0 ? -1 : track % TRACKS;
}

export function placeOfTrack(track: number): number {
  return track < 0 ? -1 - track : Math.floor(track / TRACKS);
}

export function shownSlice(beside: Beside, slice: Slice): Slice {
  return {
    ...slice,
    id: shownId(beside, slice.id),
    track: shownTrack(beside, slice.track),
    start: shownTime(beside, slice.start),
    end: shownTime(beside, slice.end),
  };
}

export function shownFlow(beside: Beside, flow: Flow): Flow {
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

export function shownLink(beside: Beside, link: Link): Link {
  return { ...link, slice: shownId(beside, link.slice), start: shownTime(beside, link.start) };
}

/** The groups of all ranks, one rank below the other; of several only the streams are open. */
export function groupsOf(besides: readonly Beside[], pages: readonly Page[]): Group[] {
  return besides.flatMap((beside, at) => {
    const page = pages[at];
    const groups = page === undefined ? [] : grouped(page);
    if (besides.length === 1) return groups;
    const counters = (group: Group) => Number(group.tracks.every((track) => track.id < 0));
    const ordered = [...groups].sort((one, other) => counters(one) - counters(other));
    return ordered.map((group, number) => ({ ...shownGroup(beside, group, number), leads: number === 0 && beside.at > 0 }));
  });
}

function shownGroup(beside: Beside, group: Group, number: number): Group {
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

/** Which slices of the ranks are one and the same collective. */
export class Twins {
  readonly #numbers = new Map<number, number>();
  readonly #slices = new Map<number, number[]>();

  /** Asks for the collectives of each rank; the picture does without where there are none. */
  async learn(data: Data, besides: readonly Beside[]): Promise<void> {
    const [first] = besides;
    if (first === undefined || besides.length < 2) return;
    for (const beside of besides) {
      const where = [{ column: "label", op: "is" as const, value: beside.label }];
      const table = await whole(data, first.trace, "arrivals", {}, { columns: ["number", "id"], where });
      this.take(beside, cells({ values: [...(table.columns["id"] ?? [])] }), [...(table.columns["number"] ?? [])]);
    }
  }

  /** The collectives of one rank: the slice of each, and its number in the job. */
  take(beside: Beside, ids: readonly unknown[], numbers: readonly unknown[]): void {
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
