// Where each group and track lies, from the top, in CSS pixels.

import type { Wanted } from "./store.ts";
import type { Place } from "./tiles.ts";
import { DEPTH } from "./tracks.ts";
import type { Group, Track } from "./tracks.ts";

/** What the reader changed: keys of groups and tracks whose opening is not the usual one. */
export type Turned = ReadonlySet<string>;

export interface Line {
  kind: "group" | "track";
  key: string;
  y: number;
  height: number;
  group: Group;
  track: Track | null;
  open: boolean;
  /** Rows that are shown, and those that "show all" would add. */
  rows: number;
  hidden: number;
}

export interface Layout {
  lines: Line[];
  height: number;
}

export const ROW = 17;
const HEAD = 24;
const COUNTER = 38;
const FOLDED_COUNTER = 18;
const GAP = 5;

/** `turned` holds `g0` and `t3` for what is turned from the usual, and `a3` for all rows of `t3`. */
export function laidOut(groups: readonly Group[], turned: Turned): Layout {
  const lines: Line[] = [];
  let y = 0;
  const put = (line: Omit<Line, "y">) => {
    lines.push({ ...line, y });
    y += line.height;
  };
  for (const group of groups) {
    const open = isOpen(group) !== turned.has(group.key);
    put({ kind: "group", key: group.key, height: HEAD, group, track: null, open, rows: 0, hidden: 0 });
    if (!open) continue;
    for (const track of group.tracks) put(lineOf(group, track, turned));
  }
  return { lines, height: y };
}

/** A group that only holds what is folded and of little interest is folded itself. */
export function isOpen(group: Group): boolean {
  return group.folded !== true && group.tracks.some((track) => track.kind !== "profiler" && track.kind !== "other");
}

function lineOf(group: Group, track: Track, turned: Turned): Omit<Line, "y"> {
  const open = track.open !== turned.has(track.key);
  const line = { kind: "track" as const, key: track.key, group, track, open };
  if (track.id < 0) {
    return { ...line, height: open ? COUNTER : FOLDED_COUNTER, rows: 1, hidden: 0 };
  }
  const all = turned.has(allKey(track));
  // one row more is worth less than the place that says so
  const most = all || track.rows <= DEPTH + 1 ? track.rows : DEPTH;
  const rows = open ? most : Math.min(track.rows, 1);
  return { ...line, height: rows * ROW + GAP, rows, hidden: open ? track.rows - rows : 0 };
}

export function allKey(track: Track): string {
  return `a${track.id}`;
}

/** How many rows of a line are asked for: 0 for all. */
export function depthOf(line: Line): number {
  if (line.track === null || line.rows >= line.track.rows) return 0;
  return line.rows;
}

export function lineAt(layout: Layout, y: number): Line | undefined {
  return layout.lines.find((line) => y >= line.y && y < line.y + line.height);
}

/** The parts of some tiles that lines need; counters of a trace are asked for together. */
export function partsFor(lines: readonly Line[], places: readonly Place[]): Wanted[] {
  const counters = new Set(lines.flatMap((line) => (line.track !== null && line.track.id < 0 ? [line.track.id] : [])));
  return places.flatMap((place) => [
    ...lines.flatMap((line) =>
      line.track === null || line.track.id < 0
        ? []
        : [{ ...place, track: line.track.id, depth: depthOf(line) }],
    ),
    ...[...counters].map((track) => ({ ...place, track, depth: 0 })),
  ]);
}

/** What has to be turned so that a row of a track is shown; the same if it is. */
export function opened(groups: readonly Group[], turned: Turned, track: number, row: number): Turned {
  const group = groups.find((known) => track >= 0 && known.tracks.some((one) => one.id === track));
  if (group === undefined) return turned;
  let found = turned;
  const line = () => laidOut(groups, found).lines.find((one) => one.track?.id === track);
  if (line() === undefined) found = turnedWith(found, group.key);
  const folded = line();
  if (folded && !folded.open && row >= folded.rows) found = turnedWith(found, folded.key);
  const cut = line();
  if (cut?.track && row >= cut.rows && cut.hidden > 0) found = turnedWith(found, allKey(cut.track));
  return found;
}

/** What is turned after one more key is. */
export function turnedWith(turned: Turned, key: string): Turned {
  const found = new Set(turned);
  if (!found.delete(key)) found.add(key);
  return found;
}

/** As the address holds it. */
export function writtenTurned(turned: Turned): string | undefined {
  return turned.size === 0 ? undefined : [...turned].sort().join(".");
}

export function readTurned(text: string | undefined): Turned {
  return new Set(text ? text.split(".").filter((key) => /^[gtca]\d+$/.test(key)) : []);
}
