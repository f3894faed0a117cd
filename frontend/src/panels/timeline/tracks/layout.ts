// The vertical layout of groups and tracks, in CSS pixels.

import type { Wanted } from "../tiles/store.ts";
import type { Place } from "../tiles/tiles.ts";
import { RULER } from "../drawing/viewport.ts";
import { DEPTH } from "./tracks.ts";
import type { Group, Track } from "./tracks.ts";

/** Keys of groups and tracks that the reader opened or closed. */
export type Toggled = ReadonlySet<string>;

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
  /** Height above the rows. */
  head: number;
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
export function layoutTracks(groups: readonly Group[], turned: Toggled): Layout {
  const lines: Line[] = [];
  let y = 0;
  const put = (line: Omit<Line, "y">) => {
    lines.push({ ...line, y });
    y += line.height;
  };
  for (const group of groups) {
    const open = isOpen(group) !== turned.has(group.key);
    const height = group.clock === undefined ? HEAD : RULER;
    put({ kind: "group", key: group.key, height, group, track: null, open, rows: 0, hidden: 0, head: 0 });
    if (!open) continue;
    for (const track of group.tracks) put(lineOf(group, track, turned));
  }
  return { lines, height: y };
}

/** Whether a group is open; groups with only folded tracks are folded. */
export function isOpen(group: Group): boolean {
  if (group.pinned === true || group.sought === true) return true;
  return group.folded !== true && group.tracks.some((track) => track.kind !== "profiler" && track.kind !== "other");
}

function lineOf(group: Group, track: Track, turned: Toggled): Omit<Line, "y"> {
  const open = track.open !== turned.has(track.key);
  const line = { kind: "track" as const, key: track.key, group, track, open };
  if (track.id < 0) {
    return { ...line, height: open ? COUNTER : FOLDED_COUNTER, rows: 1, hidden: 0, head: 0 };
  }
  const all = turned.has(allKey(track));
  // one row more is worth less than the place that says so
  const most = all || track.rows <= DEPTH + 1 ? track.rows : DEPTH;
  const rows = open ? most : Math.min(track.rows, 1);
  // the name of the track stands above those of its rows
  const head = open && track.names !== undefined ? ROW : 0;
  return { ...line, height: head + rows * ROW + GAP, rows, hidden: open ? track.rows - rows : 0, head };
}

export function allKey(track: Track): string {
  return `a${track.id}`;
}

/** The number of rows to load for a line; 0 for all. */
export function depthOf(line: Line): number {
  if (line.track === null || line.rows >= line.track.rows) return 0;
  return line.rows;
}

/** The tile parts that lines need; counters are loaded together. */
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

/** The toggled keys that make a row of a track visible. */
export function openTrackRow(groups: readonly Group[], turned: Toggled, track: number, row: number): Toggled {
  const group = groups.find((known) => track >= 0 && known.tracks.some((one) => one.id === track));
  if (group === undefined) return turned;
  let found = turned;
  const line = () => layoutTracks(groups, found).lines.find((one) => one.track?.id === track);
  if (line() === undefined) found = toggleKey(found, group.key);
  const folded = line();
  if (folded && !folded.open && row >= folded.rows) found = toggleKey(found, folded.key);
  const cut = line();
  if (cut?.track && row >= cut.rows && cut.hidden > 0) found = toggleKey(found, allKey(cut.track));
  return found;
}

/** The toggled keys with one more key toggled. */
export function toggleKey(turned: Toggled, key: string): Toggled {
  const found = new Set(turned);
  if (!found.delete(key)) found.add(key);
  return found;
}

/** The toggled keys as a URL parameter. */
export function toggledText(turned: Toggled): string | undefined {
  return turned.size === 0 ? undefined : [...turned].sort().join(".");
}

export function parseToggled(text: string | undefined): Toggled {
  return new Set(text ? text.split(".").filter((key) => /^[gtcap]\d+$/.test(key)) : []);
}
