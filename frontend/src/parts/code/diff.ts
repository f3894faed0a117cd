// The rows of a diff: changed lines with context.

/** Lines to remove from line `at` on, and their replacement. */
export interface Change {
  at: number;
  removed: readonly string[];
  added: readonly string[];
}

export interface Row {
  sign: " " | "-" | "+" | "…";
  number: number | null;
  text: string;
}

const AROUND = 2;

/** The rows of all changes, with context; other lines are replaced by a gap. */
export function rows(lines: readonly string[], changes: readonly Change[]): Row[] {
  const found: Row[] = [];
  const last = Math.max(...changes.map((change) => change.at));
  for (let at = 1; at <= lines.length + 1; ) {
    const change = changes.find((known) => known.at === at);
    if (change !== undefined) {
      found.push(...change.removed.map((text, row): Row => ({ sign: "-", number: at + row, text })));
      found.push(...change.added.map((text): Row => ({ sign: "+", number: null, text })));
    }
    at += change?.removed.length ?? 0;
    const text = lines[at - 1];
    if (text !== undefined && !changes.some((known) => known.at === at && known !== change)) {
      if (changes.some((known) => isNear(known, at))) found.push({ sign: " ", number: at, text });
      else if (found.length > 0 && at < last && found.at(-1)?.sign !== "…") {
        found.push({ sign: "…", number: null, text: "" });
      }
      at += 1;
    } else if (text === undefined) {
      at += 1;
    }
  }
  return found;
}

function isNear(change: Change, at: number): boolean {
  return at >= change.at - AROUND && at < change.at + change.removed.length + AROUND;
}
