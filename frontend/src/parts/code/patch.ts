// Changes of a file as a unified diff, which `git apply` and `patch -p1` take.

import type { Change } from "./diff.ts";

/** Lines of context before and after a change, as `git diff` has them. */
const AROUND = 3;

/** The patch of a file by its path and lines, the changes in order of their lines. */
export function patchOf(path: string, lines: readonly string[], changes: readonly Change[]): string {
  const name = path.replaceAll("\\", "/").replace(/^(?:[a-z]:)?\/+/i, "");
  let shift = 0;
  const hunks = together(changes).map((near) => {
    const text = hunkOf(lines, near, shift);
    shift += near.reduce((sum, { added, removed }) => sum + added.length - removed.length, 0);
    return text;
  });
  return `--- a/${name}\n+++ b/${name}\n${hunks.join("")}`;
}

/** The lines after the changes, in order of their lines. */
export function changedLines(lines: readonly string[], changes: readonly Change[]): string[] {
  const found: string[] = [];
  let at = 1;
  for (const { at: start, removed, added } of changes) {
    found.push(...lines.slice(at - 1, start - 1), ...added);
    at = start + removed.length;
  }
  return [...found, ...lines.slice(at - 1)];
}

/** Changes so near to each other that they share their context. */
function together(changes: readonly Change[]): Change[][] {
  const found: Change[][] = [];
  for (const change of changes) {
    const last = found.at(-1)?.at(-1);
    if (last !== undefined && change.at - (last.at + last.removed.length) <= 2 * AROUND) found.at(-1)?.push(change);
    else found.push([change]);
  }
  return found;
}

/** `shift` is how many lines the file has more by the changes before. */
function hunkOf(lines: readonly string[], changes: readonly Change[], shift: number): string {
  const [first, last] = [changes[0], changes.at(-1)];
  if (first === undefined || last === undefined) return "";
  const from = Math.max(1, first.at - AROUND);
  const to = Math.min(lines.length, last.at + last.removed.length - 1 + AROUND);
  const rows: string[] = [];
  let at = from;
  for (const { at: start, removed, added } of changes) {
    rows.push(...lines.slice(at - 1, start - 1).map((line) => ` ${line}`));
    rows.push(...removed.map((line) => `-${line}`), ...added.map((line) => `+${line}`));
    at = start + removed.length;
  }
  rows.push(...lines.slice(at - 1, to).map((line) => ` ${line}`));
  const count = (signs: string) => rows.filter((row) => signs.includes(row[0] ?? "")).length;
  return `@@ -${from},${count(" -")} +${from + shift},${count(" +")} @@\n${rows.join("\n")}\n`;
}
