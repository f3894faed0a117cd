// The sources of a timeline: the first trace, other ranks of its job, a second trace, and queries.
// Converts ids and times of each source to those of the timeline, whose clock is that of the first
// trace.

import type { Page } from "../../../data/api.ts";
import type { Link } from "../input/relations.ts";
import type { Flow, Slice, Step } from "../drawing/viewport.ts";
import { groupTracks } from "./tracks.ts";
import type { Group, Track } from "./tracks.ts";

/** The most ranks that are shown at once, the first trace among them. */
export const MOST_RANKS = 8;
/** The place of the second trace, and of the first query. */
export const BESIDE = MOST_RANKS;
export const FIRST_QUERY = BESIDE + 1;
export const MOST_QUERIES = 8;
/** Ranges of slice, track and counter ids per source. */
const SLICES = 2 ** 32;
const TRACKS = 2 ** 20;
const KEYS = 1_000;

/** Times of a source, multiplied by `stretch` plus `shift`, are times of the timeline. */
export interface Clock {
  stretch: number;
  shift: number;
}

export interface Source extends Clock {
  /** Its place in the timeline, which no other source changes; 0 is the first trace, whose ids are unchanged. */
  at: number;
  label: string;
  trace: string;
  /** The query over the trace whose rows are the slices; undefined for the trace itself. */
  query?: string;
  /** Its steps, by the clock of the timeline, where they are drawn. */
  steps?: readonly Step[];
}

/** The first trace of a timeline. */
export function firstSource(trace: string, label = ""): Source {
  return { at: 0, label, trace, stretch: 1, shift: 0 };
}

/** Whether it is a trace or a rank, and no query. */
export function isTrace(source: Source): boolean {
  return source.query === undefined;
}

export function shownTime(source: Clock, time: number): number {
  return time * source.stretch + source.shift;
}

export function ownTime(source: Clock, time: number): number {
  return (time - source.shift) / source.stretch;
}

export function shownId(source: Source, id: number): number {
  return id < 0 ? id : source.at * SLICES + id;
}

export function ownId(id: number): number {
  return id < 0 ? id : id % SLICES;
}

export function placeOfId(id: number): number {
  return id < 0 ? 0 : Math.floor(id / SLICES);
}

/** Counters of a source share one negative id. */
export function shownTrack(source: Source, track: number): number {
  return track < 0 ? -1 - source.at : source.at * TRACKS + track;
}

export function ownTrack(track: number): number {
  return track < 0 ? -1 : track % TRACKS;
}

export function placeOfTrack(track: number): number {
  return track < 0 ? -1 - track : Math.floor(track / TRACKS);
}

export function shownSlice(source: Source, slice: Slice): Slice {
  return {
    ...slice,
    id: shownId(source, slice.id),
    track: shownTrack(source, slice.track),
    start: shownTime(source, slice.start),
    end: shownTime(source, slice.end),
  };
}

export function shownFlow(source: Source, flow: Flow): Flow {
  return {
    ...flow,
    id: shownId(source, flow.id),
    to: shownId(source, flow.to),
    start: shownTime(source, flow.start),
    toTime: shownTime(source, flow.toTime),
    track: shownTrack(source, flow.track),
    toTrack: shownTrack(source, flow.toTrack),
  };
}

export function shownLink(source: Source, link: Link): Link {
  return { ...link, slice: shownId(source, link.slice), start: shownTime(source, link.start) };
}

/** The groups of all traces; of several only streams and main threads are open. */
export function groupsOf(sources: readonly Source[], pages: readonly Page[]): Group[] {
  const open = new Set(sources.some(({ at }) => at === BESIDE) ? ["device", "host"] : ["device"]);
  return sources.flatMap((source, at) => {
    const page = pages[at];
    const groups = page === undefined ? [] : groupTracks(page);
    if (sources.length === 1) return groups;
    const counters = (group: Group) => Number(group.tracks.every((track) => track.id < 0));
    const ordered = [...groups].sort((one, other) => counters(one) - counters(other));
    return ordered.map((group, number) => shownGroup(source, group, number, open));
  });
}

function shownGroup(source: Source, group: Group, number: number, open: ReadonlySet<string>): Group {
  const tracks = group.tracks.map((track, place) => ({
    ...shownTrackOf(source, track, place),
    open: track.open && open.has(track.kind),
  }));
  const folded = tracks.every((track) => track.id < 0);
  const leads = number === 0 && source.at > 0;
  const clock = leads && source.at === BESIDE ? { clock: source } : {};
  return { ...group, key: `g${source.at * KEYS + number}`, tracks, of: source.label, at: source.at, leads, folded, ...clock };
}

function shownTrackOf(source: Source, track: Track, place: number): Track {
  return {
    ...track,
    id: shownTrack(source, track.id),
    key: track.id < 0 ? `c${source.at * KEYS + place}` : `t${shownTrack(source, track.id)}`,
    start: shownTime(source, track.start),
    end: shownTime(source, track.end),
  };
}

/** The group of the queries, each of which is a track; none without a query. */
export function queryGroups(sources: readonly Source[], pages: readonly Page[]): Group[] {
  const tracks = sources.flatMap((source, at) => {
    const page = pages[at];
    const found = page === undefined ? [] : groupTracks(page).flatMap((group) => group.tracks);
    return found.map((track) => ({ ...shownTrackOf(source, track, 0), kind: "query", what: "query", open: true }));
  });
  return tracks.length === 0 ? [] : [{ key: `g${FIRST_QUERY * KEYS}`, title: "Queries", tracks, at: FIRST_QUERY }];
}
