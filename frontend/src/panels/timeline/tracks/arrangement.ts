// How the reader arranges the tracks: grouped, in another order, pinned to the top, hidden, filtered.

import { GROUPINGS, regrouped } from "./grouping.ts";
import type { Grouping } from "./grouping.ts";
import type { Group, Track } from "./tracks.ts";

export interface Arrangement {
  by: Grouping;
  /** Keys of tracks that stay at the top, in their order. */
  pins: readonly string[];
  /** Keys of groups and tracks that are left out. */
  hidden: readonly string[];
  /** Keys in another order than the usual: they take one another's places. */
  order: readonly string[];
  /** What the name of a track, of its kind or of its group must contain; empty for all. */
  only: string;
}

export const USUAL: Arrangement = { by: "process", pins: [], hidden: [], order: [], only: "" };
export const PINS = "p0";

type Words = Record<string, string | undefined>;

/** The names of the parameters in the address. */
export const ARRANGEMENT_WORDS = ["by", "pin", "hide", "order", "tracks"] as const;

export function readArrangement(params: Readonly<Words>): Arrangement {
  const by = GROUPINGS.find(([known]) => known === params["by"])?.[0] ?? "process";
  return { by, pins: keys(params["pin"]), hidden: keys(params["hide"]), order: keys(params["order"]), only: params["tracks"] ?? "" };
}

function keys(text: string | undefined): string[] {
  return [...new Set((text ?? "").split(".").filter((key) => /^[gtc]\d+$/.test(key)))];
}

export function arrangementWords({ by, pins, hidden, order, only }: Arrangement): Words {
  const text = (list: readonly string[]) => (list.length === 0 ? undefined : list.join("."));
  return { by: by === "process" ? undefined : by, pin: text(pins), hide: text(hidden), order: text(order), tracks: only || undefined };
}

/** The groups as they are shown, the pinned tracks first. */
export function arranged(groups: readonly Group[], arrangement: Arrangement): Group[] {
  const { pins, hidden, only } = arrangement;
  const all = ordered(groups, arrangement);
  const text = only.trim().toLowerCase();
  const isFound = (group: Group, track: Track) =>
    [track.title, track.label, track.what, group.title, group.of ?? ""].some((name) => name.toLowerCase().includes(text));
  const shown = all
    .filter((group) => !hidden.includes(group.key))
    .map((group) => {
      const tracks = group.tracks.filter(
        (track) => !pins.includes(track.key) && !hidden.includes(track.key) && (text === "" || isFound(group, track)),
      );
      return { ...group, tracks, ...(text === "" ? {} : { sought: true }) };
    })
    .filter((group) => group.tracks.length > 0);
  const pinned = pins.flatMap((key) => all.flatMap((group) => group.tracks.filter((track) => track.key === key).map((track) => placed(group, track))));
  if (pinned.length === 0) return shown;
  return [{ key: PINS, title: "Pinned", tracks: pinned, pinned: true }, ...shown];
}

/** A track that no longer stands below the name of what it is of. */
function placed(group: Group, track: Track): Track {
  if (track.id < 0 && group.of === undefined) return track;
  return { ...track, what: `${track.what} · ${group.of ?? group.title}` };
}

function ordered(groups: readonly Group[], { by, order }: Arrangement): Group[] {
  const found = regrouped(groups, by).map((group) => ({ ...group, tracks: inOrder(group.tracks, order) }));
  return inOrder(found, order);
}

/** The members that an order names take one another's places; the others keep theirs. */
function inOrder<T extends { key: string }>(list: readonly T[], order: readonly string[]): T[] {
  const named = list.filter(({ key }) => order.includes(key));
  named.sort((one, other) => order.indexOf(one.key) - order.indexOf(other.key));
  let next = 0;
  return list.map((one) => (order.includes(one.key) ? (named[next++] ?? one) : one));
}

/** What a group or track can change its place with: all groups, its group, or the pinned tracks. */
function siblings(groups: readonly Group[], arrangement: Arrangement, key: string): string[] {
  if (arrangement.pins.includes(key)) return [...arrangement.pins];
  const all = ordered(groups, arrangement);
  const own = key.startsWith("g") ? all : (all.find(({ tracks }) => tracks.some((track) => track.key === key))?.tracks ?? []);
  return own.map((one) => one.key).filter((one) => !arrangement.pins.includes(one));
}

/** Puts a group or track where another one is; as it was, if they have no common list. */
export function movedTo(groups: readonly Group[], arrangement: Arrangement, key: string, target: string): Arrangement {
  const list = siblings(groups, arrangement, key);
  const [from, to] = [list.indexOf(key), list.indexOf(target)];
  if (from < 0 || to < 0 || from === to) return arrangement;
  list.splice(to, 0, ...list.splice(from, 1));
  if (arrangement.pins.includes(key)) return { ...arrangement, pins: list };
  const usual = siblings(groups, { ...arrangement, order: [] }, key);
  const others = arrangement.order.filter((one) => !usual.includes(one));
  return { ...arrangement, order: [...others, ...changed(list, usual)] };
}

/** The part of a list from its first to its last member that is not in its usual place. */
function changed(list: readonly string[], usual: readonly string[]): string[] {
  const differs = (key: string, at: number) => key !== usual[at];
  const first = list.findIndex(differs);
  return first < 0 ? [] : list.slice(first, list.findLastIndex(differs) + 1);
}

/** The group or track that is shown before or after; undefined at an end of the list. */
export function neighbour(groups: readonly Group[], arrangement: Arrangement, key: string, by: 1 | -1): string | undefined {
  const shown = arranged(groups, arrangement);
  const lists = [shown.filter((group) => group.key !== PINS), ...shown.map((group) => group.tracks)];
  const list = lists.find((one) => one.some((member) => member.key === key)) ?? [];
  return list[list.findIndex((member) => member.key === key) + by]?.key;
}

export function togglePin(arrangement: Arrangement, key: string): Arrangement {
  const { pins } = arrangement;
  return { ...arrangement, pins: pins.includes(key) ? pins.filter((one) => one !== key) : [...pins, key] };
}

export function toggleHidden(arrangement: Arrangement, key: string): Arrangement {
  const { hidden, pins } = arrangement;
  if (hidden.includes(key)) return { ...arrangement, hidden: hidden.filter((one) => one !== key) };
  return { ...arrangement, hidden: [...hidden, key], pins: pins.filter((one) => one !== key) };
}

/** Another grouping; what concerns groups has no meaning in it. */
export function groupedBy(arrangement: Arrangement, by: Grouping): Arrangement {
  const tracks = (list: readonly string[]) => list.filter((key) => !key.startsWith("g"));
  return { ...arrangement, by, hidden: tracks(arrangement.hidden), order: tracks(arrangement.order) };
}

/** As it must be for a track to be seen. */
export function showing(groups: readonly Group[], arrangement: Arrangement, track: number): Arrangement {
  const has = (group: Group) => group.tracks.some((one) => one.id === track && track >= 0);
  if (arranged(groups, arrangement).some(has)) return arrangement;
  const group = regrouped(groups, arrangement.by).find(has);
  const key = group?.tracks.find((one) => one.id === track)?.key;
  if (group === undefined) return arrangement;
  const found = { ...arrangement, hidden: arrangement.hidden.filter((one) => one !== key && one !== group.key) };
  return arranged(groups, found).some(has) ? found : { ...found, only: "" };
}
