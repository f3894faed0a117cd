// Tracks and counters in groups, as the `timeline` view lists them.

import type { Page } from "../../api.ts";
import { reader } from "./reading.ts";

export interface Track {
  /** What the address calls it: `t3`, or `c0` for the first counter. */
  key: string;
  /** The view's number; -1 for counters. */
  id: number;
  kind: string;
  title: string;
  /** What lies on it, in a word or two. */
  what: string;
  rows: number;
  count: number;
  start: number;
  end: number;
  /** Of a counter. */
  low: number;
  high: number;
  /** Whether it is shown whole unless the reader says otherwise. */
  open: boolean;
}

export interface Group {
  key: string;
  title: string;
  tracks: Track[];
}

/** Rows of a deep track that are shown unless all are asked for. */
export const DEPTH = 8;

const WHAT: Record<string, string> = {
  host: "operators and calls",
  python: "Python frames",
  device: "kernels and copies",
  "device annotation": "annotations",
  "device sync": "waits",
  profiler: "profiler",
  other: "other",
  memory: "memory",
  utilization: "utilisation",
  queue: "launched, not done",
  counter: "counter",
};
const ON_DEVICE = new Set(["device", "device annotation", "device sync"]);
/** Streams and counters that are open at first. */
const OPEN_STREAMS = 4;
const OPEN_COUNTERS = 3;

/** The groups from the top: counters, threads by process, streams by device, the rest. */
export function grouped(page: Page): Group[] {
  const counters: Track[] = [];
  const groups = new Map<string, Track[]>();
  const read = reader(page);
  for (let row = 0; row < page.rows; row++) {
    const kind = read.text("category", row);
    const isCounter = read.text("kind", row) === "counter";
    const id = read.number("track", row);
    const start = read.number("start", row);
    const title = read.text("name", row) || `track ${id}`;
    const track: Track = {
      key: isCounter ? `c${counters.length}` : `t${id}`,
      id: isCounter ? -1 : id,
      kind,
      title,
      what: WHAT[kind] ?? kind,
      rows: isCounter ? 1 : read.number("rows", row),
      count: read.number("count", row),
      start,
      end: start + read.number("duration", row),
      low: read.number("low", row),
      high: read.number("high", row),
      open: false,
    };
    if (isCounter) counters.push(track);
    else if (track.count > 0) grow(groups, read.text("process", row) || "no process", track);
  }
  const listed = [...groups].map(([title, tracks]) => ({ title, tracks }));
  listed.sort((one, other) => place(one.tracks) - place(other.tracks));
  if (counters.length > 0) listed.unshift({ title: "Counters", tracks: counters });
  choose(listed.flatMap((group) => group.tracks));
  return listed.map((group, at) => ({ key: `g${at}`, ...group }));
}

function grow(groups: Map<string, Track[]>, title: string, track: Track): void {
  const found = groups.get(title);
  if (found) found.push(track);
  else groups.set(title, [track]);
}

/** Where a group stands: by what most of its slices are. */
function place(tracks: Track[]): number {
  const count = (test: (kind: string) => boolean) =>
    tracks.reduce((sum, track) => sum + (test(track.kind) ? track.count : 0), 0);
  const device = count((kind) => ON_DEVICE.has(kind));
  const host = count((kind) => kind === "host" || kind === "python");
  if (device === 0 && host === 0) return 2;
  return device > host ? 1 : 0;
}

/** The thread that the program runs on: the first that has not much less than the busiest. */
export function mainThread(tracks: Track[]): Track | undefined {
  const host = tracks.filter((track) => track.kind === "host");
  const most = Math.max(0, ...host.map((track) => track.count));
  return host.find((track) => track.count * 10 >= most);
}

function choose(tracks: Track[]): void {
  const streams = tracks
    .filter((track) => track.kind === "device")
    .sort((one, other) => other.count - one.count)
    .slice(0, OPEN_STREAMS);
  const main = mainThread(tracks);
  const open = new Set<Track | undefined>([main, ...streams]);
  // without operators or streams the frames are all there is to see
  if (open.size === 1 && main === undefined) open.add(tracks.find((track) => track.id >= 0));
  for (const kind of ["utilization", "memory", "queue", "counter"]) {
    const those = tracks.filter((track) => track.id < 0 && track.kind === kind);
    const most = those.sort((one, other) => other.high - one.high)[0];
    if ([...open].filter((track) => track !== undefined && track.id < 0).length < OPEN_COUNTERS) {
      open.add(most);
    }
  }
  for (const track of tracks) track.open = open.has(track);
}
