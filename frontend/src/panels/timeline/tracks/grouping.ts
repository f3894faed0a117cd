// Tracks grouped otherwise than by process: by device, or by what they hold.

import type { Group, Track } from "./tracks.ts";

export type Grouping = "process" | "device" | "kind";

export const GROUPINGS: readonly (readonly [Grouping, string, string])[] = [
  ["process", "process", "As recorded: threads by process, streams by device, counters apart"],
  ["device", "device", "Each device with its streams and its counters"],
  ["kind", "kind", "Operators, frames, kernels, annotations, counters, each by themselves"],
];

const QUERIES = "Queries";
const KINDS: readonly (readonly [title: string, kinds: readonly string[]])[] = [
  [QUERIES, ["query"]],
  ["Counters", ["utilization", "flops", "queue", "memory", "counter"]],
  ["Kernels and copies", ["device"]],
  ["Operators", ["host"]],
  ["Python frames", ["python"]],
  ["Annotations of devices", ["device annotation"]],
  ["Waits of devices", ["device sync"]],
  ["Profiler", ["profiler"]],
];
const OTHER = "Other";

/** The groups of all tracks, whose keys begin anew in each grouping. */
export function regrouped(groups: readonly Group[], by: Grouping): readonly Group[] {
  if (by === "process") return groups;
  const found = by === "kind" ? byKind(groups) : byDevice(groups);
  return found.map((group, at) => ({ ...group, key: `g${at}` }));
}

function byKind(groups: readonly Group[]): Omit<Group, "key">[] {
  const all = groups.flatMap((group) => group.tracks.map((track) => ({ ...track, what: placeOf(group, track) })));
  const titleOf = (track: Track) => KINDS.find(([, kinds]) => kinds.includes(track.kind))?.[0] ?? OTHER;
  return [...KINDS.map(([title]) => title), OTHER]
    .map((title) => ({ title, tracks: all.filter((track) => titleOf(track) === title) }))
    .filter(({ tracks }) => tracks.length > 0);
}

/** Where a track is from, once it no longer stands below the name of that. */
function placeOf(group: Group, track: Track): string {
  const process = track.id < 0 ? "" : group.title;
  return [group.of ?? "", process].filter(Boolean).join(", ") || track.what;
}

function byDevice(groups: readonly Group[]): Omit<Group, "key">[] {
  const devices = new Map<string, Omit<Group, "key">>();
  const others: Group[] = [];
  for (const group of groups) {
    for (const track of group.tracks.filter((one) => one.device !== null)) {
      const key = `${group.at ?? 0} ${track.device}`;
      const device = devices.get(key) ?? { title: `device ${track.device}`, tracks: [], ...rankOf(group) };
      devices.set(key, device);
      device.tracks.push(track);
    }
    const tracks = group.tracks.filter((one) => one.device === null);
    if (tracks.length > 0) others.push({ ...group, leads: false, tracks });
  }
  const isHost = (group: Group) => group.tracks.some((track) => track.kind === "host" || track.kind === "python");
  const isQueries = (group: Group) => group.tracks.every((track) => track.kind === "query");
  const rest = others.filter((group) => !isQueries(group));
  return [...others.filter(isQueries), ...rest.filter(isHost), ...devices.values(), ...rest.filter((group) => !isHost(group))];
}

function rankOf({ of, at }: Group): Partial<Group> {
  return { ...(of === undefined ? {} : { of }), ...(at === undefined ? {} : { at }) };
}
