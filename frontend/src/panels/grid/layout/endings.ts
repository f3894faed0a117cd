// Which end of a long name a cell shows: names that begin and end alike show where they differ.

/** Characters at the begin of a name that a cell shows at the least. */
const BEGIN = 24;
/** Characters of the place where names differ, and how many of them come before it. */
const WINDOW = 22;
const BEFORE = 2;
const ELLIPSIS = "…";

/** The end to show of each name that another is like, by begin and end; `fit` characters need no cut. */
export function endings(names: readonly string[], tail: number, fit = 0): ReadonlyMap<string, string> {
  const long = [...new Set(names)].filter((name) => name.length > Math.max(BEGIN + tail, fit));
  const found = new Map<string, string>();
  for (const alike of groups(long, (name) => name.slice(0, BEGIN) + name.slice(-tail))) tellApart(alike, BEGIN, found);
  return found;
}

/** Names by a key, without those whose key no other name has. */
function groups(names: readonly string[], key: (name: string) => string): string[][] {
  const found = new Map<string, string[]>();
  for (const name of names) found.set(key(name), [...(found.get(key(name)) ?? []), name]);
  return [...found.values()].filter((group) => group.length > 1);
}

function tellApart(names: readonly string[], from: number, found: Map<string, string>): void {
  const at = sharedLength(names, from);
  const shown = (name: string) => name.slice(Math.max(at - BEFORE, 0), at - BEFORE + WINDOW);
  for (const name of names) {
    const isWhole = at - BEFORE + WINDOW >= name.length;
    found.set(name, shown(name) + (isWhole ? "" : ELLIPSIS));
  }
  // Some may still be alike there: these show where they differ from each other.
  for (const alike of groups(names, shown)) tellApart(alike, at + WINDOW - BEFORE, found);
}

/** How many characters all names have in common, at least `from`. */
function sharedLength(names: readonly string[], from: number): number {
  const [first = ""] = names;
  let at = from;
  while (at < first.length && names.every((name) => name[at] === first[at])) at += 1;
  return at;
}
