// What the command palette offers, and which of it matches what was typed.

import { plain } from "../../parts/text/plain.ts";
import { fuzzyMatch } from "./fuzzy.ts";

export type EntryKind =
  | "panel" | "trace" | "step" | "setting" | "action" | "table"
  | "operator" | "kernel" | "line" | "slice" | "finding";

export interface Entry {
  /** Unique, also beside entries of other kinds. */
  id: string;
  kind: EntryKind;
  title: string;
  /** What is told beside the title, such as a time. */
  detail?: string;
  /** Keys that do the same. */
  keys?: string;
  run: () => void;
}

export interface FoundEntry extends Entry {
  /** Indices of the characters of the title that matched. */
  places: readonly number[];
}

/** Most entries that are shown. */
const MOST = 50;
/** Kinds that come first where matches are as good; names of the trace are many. */
const PREFERRED: Readonly<Record<EntryKind, number>> = {
  panel: 3, action: 2, setting: 2, trace: 1, step: 1, finding: 1, table: 0, operator: 0, kernel: 0, line: 0, slice: 0,
};
/** Kinds that an empty question shows. */
const AT_FIRST: ReadonlySet<EntryKind> = new Set(["panel", "action", "setting", "trace"]);
/** Words that stand before a question, as in editors: only actions, only steps. */
const PREFIXES: Readonly<Record<string, ReadonlySet<EntryKind>>> = {
  ">": new Set(["action", "setting"]),
  ":": new Set(["step"]),
};

/** The text without its prefix, and the kinds that the prefix asks for; null for all. */
export function parsePalette(typed: string): { asked: string; kinds: ReadonlySet<EntryKind> | null } {
  const kinds = PREFIXES[typed.charAt(0)];
  return kinds === undefined ? { asked: typed.trim(), kinds: null } : { asked: typed.slice(1).trim(), kinds };
}

/** The entries that match what was typed, the best first. */
export function matchingEntries(typed: string, entries: readonly Entry[]): FoundEntry[] {
  const { asked, kinds } = parsePalette(typed);
  const offered = entries.filter((entry) => kinds?.has(entry.kind) ?? true);
  if (asked === "") {
    const first = kinds === null ? offered.filter((entry) => AT_FIRST.has(entry.kind)) : offered;
    return first.slice(0, 2 * MOST).map((entry) => ({ ...entry, places: [] }));
  }
  const found = offered.flatMap((entry) => {
    const match = fuzzyMatch(asked, entry.title);
    return match === null ? [] : [{ entry, places: match.places, score: match.score + PREFERRED[entry.kind] }];
  });
  found.sort((one, other) => other.score - one.score);
  return found.slice(0, MOST).map(({ entry, places }) => ({ ...entry, places }));
}

/** A title in pieces that matched, or did not. */
export function titlePieces(title: string, places: readonly number[]): { text: string; isMatch: boolean }[] {
  const matched = new Set(places);
  const pieces: { text: string; isMatch: boolean }[] = [];
  for (let at = 0; at < title.length; at += 1) {
    const isMatch = matched.has(at);
    const last = pieces.at(-1);
    if (last?.isMatch === isMatch) last.text += title.charAt(at);
    else pieces.push({ text: title.charAt(at), isMatch });
  }
  return pieces.map((piece) => ({ ...piece, text: plain(piece.text) }));
}
