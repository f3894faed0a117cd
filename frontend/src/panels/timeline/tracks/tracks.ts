// Tracks and counters in groups, as the `timeline` view lists them.

import type { Cell, Page } from "../../../data/api.ts";
import { bytesText, countText, rateText, shareText } from "../../../units.ts";
import type { Source } from "./sources.ts";
import { cellReader } from "../tiles/cell-reader.ts";

export interface Track {
  /** The key in the URL: `t3`, or `c0` for the first counter. */
  key: string;
  /** The view's number; -1 for counters. */
  id: number;
  kind: string;
  /** The number of its device, if it is of one. */
  device: number | null;
  title: string;
  /** The title as there is room for it. */
  label: string;
  /** A short description of the content. */
  what: string;
  rows: number;
  count: number;
  start: number;
  end: number;
  /** Of a counter. */
  low: number;
  high: number;
  /** The most that a counter can be; null if unknown, or if there is no such limit. */
  peak: number | null;
  /** A sentence on what it shows; empty if there is nothing to say. */
  note: string;
  /** Whether it is open by default. */
  open: boolean;
  /** The name that each row is of, where rows are by name. */
  names?: readonly RowName[];
}

export interface RowName {
  name: string;
  /** Sum of the durations, and number, of its slices. */
  time: number;
  count: number;
}

export interface Group {
  key: string;
  title: string;
  tracks: Track[];
  /** The rank that it is of, where several are shown, and its place among them. */
  of?: string;
  at?: number;
  /** Whether it is the first of a source below another, and the source if that has a clock of its own. */
  leads?: boolean;
  clock?: Source;
  /** Whether it is folded by default. */
  folded?: boolean;
  /** Whether it stays at the top. */
  pinned?: boolean;
  /** Whether it holds what a filter has found. */
  sought?: boolean;
}

/** The title of a counter's scale and its values: in bytes, percent, FLOP/s, or as a count. */
export function counterText(kind: string, value: number): string {
  if (kind === "memory") return bytesText(value);
  if (kind === "flops") return rateText(value, "FLOP");
  return kind === "utilization" ? shareText(value / 100) : countText(value);
}

/** Rows of a deep track that are shown by default. */
export const DEPTH = 8;

const WHAT: Record<string, string> = {
  host: "operators",
  python: "frames",
  device: "kernels",
  "device annotation": "annotations",
  "device sync": "waits",
  profiler: "profiler",
  other: "other",
  memory: "memory",
  utilization: "utilisation",
  flops: "FLOP/s",
  query: "query",
  queue: "queued",
  counter: "counter",
};
const ON_DEVICE = new Set(["device", "device annotation", "device sync"]);
/** Height that the tracks may take at first, and that of a folded one, in pixels. */
const ROOM = 590;
const FOLDED = 24;
/** Streams and counters that are open at first. */
const OPEN_STREAMS = 4;
const OPEN_COUNTERS = 4;

/** The groups from the top: counters, threads by process, streams by device, the rest. */
export function groupTracks(page: Page): Group[] {
  const counters: Track[] = [];
  const groups = new Map<string, Track[]>();
  const read = cellReader(page);
  const names = rowNames(page);
  for (let row = 0; row < page.rows; row++) {
    if (read.text("kind", row) === "row") continue;
    const kind = read.text("category", row);
    const isCounter = read.text("kind", row) === "counter";
    const id = read.number("track", row);
    const start = read.number("start", row);
    const title = read.text("name", row) || `track ${id}`;
    const track: Track = {
      key: isCounter ? `c${counters.length}` : `t${id}`,
      id: isCounter ? -1 : id,
      kind,
      device: numberOrNull(read.cell("device", row)),
      title,
      label: shortTitle(title),
      what: WHAT[kind] ?? kind,
      rows: isCounter ? 1 : read.number("rows", row),
      count: read.number("count", row),
      start,
      end: start + read.number("duration", row),
      low: read.number("low", row),
      high: read.number("high", row),
      peak: numberOrNull(read.cell("peak", row)),
      note: read.text("note", row),
      open: false,
      ...(!isCounter && names.has(id) ? { names: names.get(id) ?? [] } : {}),
    };
    if (isCounter) counters.push(track);
    else if (track.count > 0) grow(groups, read.text("process", row) || "no process", track);
  }
  const listed = [...groups].map(([title, tracks]) => ({ title: spelled(title, tracks), tracks }));
  listed.sort((one, other) => place(one.tracks) - place(other.tracks));
  unlabel(counters);
  if (counters.length > 0) listed.unshift({ title: "Counters", tracks: counters });
  choose(listed.flatMap((group) => group.tracks));
  return listed.map((group, at) => ({ key: `g${at}`, ...group }));
}

/** The names of rows by track, where rows are by name. */
function rowNames(page: Page): Map<number, RowName[]> {
  const read = cellReader(page);
  const found = new Map<number, RowName[]>();
  for (let row = 0; row < page.rows; row++) {
    if (read.text("kind", row) !== "row") continue;
    const names = found.get(read.number("track", row)) ?? [];
    names[read.number("row", row)] = { name: read.text("name", row), time: read.number("duration", row), count: read.number("count", row) };
    found.set(read.number("track", row), names);
  }
  return found;
}

function numberOrNull(cell: Cell): number | null {
  return typeof cell === "number" ? cell : null;
}

function grow(groups: Map<string, Track[]>, title: string, track: Track): void {
  const found = groups.get(title);
  if (found) found.push(track);
  else groups.set(title, [track]);
}

/** The sort key of a group, by the kind of most of its slices. */
function place(tracks: readonly Track[]): number {
  const count = (test: (kind: string) => boolean) =>
    tracks.reduce((sum, track) => sum + (test(track.kind) ? track.count : 0), 0);
  const device = count((kind) => ON_DEVICE.has(kind));
  const host = count((kind) => kind === "host" || kind === "python");
  if (device === 0 && host === 0) return 2;
  return device > host ? 1 : 0;
}

/** The main thread: the first that is nearly as busy as the busiest. */
export function mainThread(tracks: Track[]): Track | undefined {
  const host = tracks.filter((track) => track.kind === "host");
  const most = Math.max(0, ...host.map((track) => track.count));
  return host.find((track) => track.count * 10 >= most);
}

/** "thread 12 (main)" is "main 12", "device 0 percent busy" is "device 0 busy". */
function shortTitle(title: string): string {
  return title.replace(/^thread (-?\d+) \((.+)\)$/, "$2 $1").replace(" percent busy", " busy");
}

/** Removes the device number if there is only one device. */
function unlabel(counters: readonly Track[]): void {
  const device = /^device \d+ (?=stream)/;
  const known = new Set(counters.map((track) => device.exec(track.label)?.[0]).filter(Boolean));
  if (known.size !== 1) return;
  for (const track of counters) track.label = track.label.replace(device, "");
}

/** A process that has a number only. */
function spelled(title: string, tracks: readonly Track[]): string {
  if (!/^-?\d+$/.test(title)) return title;
  return place(tracks) === 1 ? `device ${title}` : `process ${title}`;
}

/** Opens the most informative tracks until a small screen is full. */
function choose(tracks: Track[]): void {
  const main = mainThread(tracks);
  const streams = byCount(tracks.filter((track) => track.kind === "device")).slice(0, OPEN_STREAMS);
  const counters = ["utilization", "flops", "memory", "queue", "counter"].flatMap((kind) =>
    tracks
      .filter((track) => track.id < 0 && track.kind === kind)
      .sort((one, other) => weight(other) - weight(one))
      .slice(0, 1),
  );
  const frames = tracks.filter((track) => track.kind === "python");
  const sure = [...(main ? [main] : []), ...streams, ...counters.slice(0, OPEN_COUNTERS)];
  // where the room is left: the other threads that work, then the frames of the main one
  const others = byCount(tracks.filter((track) => track.kind === "host" && track !== main));
  const first = main && frames.find((track) => track.title === main.title);
  const more = [...others.slice(0, 2), first ?? frames[0]].filter((track) => track !== undefined);
  let room = ROOM - tracks.length * FOLDED - sure.reduce((sum, track) => sum + taken(track), 0);
  for (const track of sure) track.open = true;
  for (const track of more) {
    if (taken(track) > room) continue;
    track.open = true;
    room -= taken(track);
  }
}

function byCount(tracks: Track[]): Track[] {
  return tracks.sort((one, other) => other.count - one.count);
}

/** About how much an open track takes beyond what a folded one does, in pixels. */
function taken(track: Track): number {
  return track.id < 0 ? 20 : (Math.min(track.rows, DEPTH) - 1) * 17;
}

/** The most informative counter of a kind: used memory, where it is largest. */
function weight(track: Track): number {
  return track.title.endsWith(" reserved") ? -1 / Math.max(track.high, 1) : track.high;
}

/** The top of a counter's scale: its peak, unless it is ever above. */
export function mostOf({ kind, high, peak }: Pick<Track, "kind" | "high" | "peak">): number {
  return kind === "utilization" ? 100 : Math.max(high, peak ?? 0);
}
