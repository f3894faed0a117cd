// Converts a fix to an edit of the source file, if its code matches the file in exactly one place.
// Otherwise the fix is shown as code to adapt.

import { calls, isLiteral, splitComment } from "./calls.ts";
import type { Argument, Call, Span } from "./calls.ts";

/** An edit: lines to remove from line `at` on, and their replacement. */
export interface Edit {
  at: number;
  removed: string[];
  added: string[];
}

interface Replacement extends Span {
  text: string;
}

/** Module names with the same meaning in every file; others stand for the user's variables. */
const MODULES = /^(?:torch|dist|nn|F|np|gc)$/;
/** Comments that offer a choice, or quote the previous code. */
const CHOICE = /\b(?:or|for|before|after|without)\b/;
const ELLIPSIS = "...";

/** Returns the edits of the file; empty if the fix does not match it. */
export function edits(code: string, lines: readonly string[], marked: number | null): Edit[] {
  const text = lines.join("\n");
  const found: Edit[] = [];
  for (const statement of statements(code) ?? []) {
    const made = replaced(statement, text, marked) ?? inserted(statement, lines);
    if (made === null) return [];
    found.push(...made);
  }
  return merged(found);
}

/** The fix as one-line statements; null for a block or a choice. */
function statements(code: string): string[] | null {
  const found: string[] = [];
  for (const line of code.split("\n")) {
    const { code: words, remark } = splitComment(line);
    if (CHOICE.test(remark)) return null;
    if (words === "") continue;
    if (/^\s|^@|^(?:import|from|export)\b|:$|:\s*\.\.\.$/.test(words)) return null;
    found.push(words);
  }
  return found;
}

/** Replaces a call or value that the file contains. */
function replaced(statement: string, text: string, marked: number | null): Edit[] | null {
  const assigned = assignment(statement);
  if (assigned !== null && isLiteral(assigned.value)) return reassigned(assigned, text);
  const wanted = wholeCall(assigned?.value ?? statement);
  if (wanted === null) return null;
  const same = calls(text).filter((call) => isSame(wanted.callee, call.callee));
  const here = same.filter((call) => marked !== null && touches(call, text, marked));
  const chosen = here.length > 0 ? here : isOwn(wanted) && same.length === 1 ? same : [];
  const changes = chosen.map((call) => merge(wanted, call, text)).filter((change) => change !== null);
  const isNested = changes.some((one, at) => changes.slice(at + 1).some((next) => next.from < one.to));
  if (changes.length === 0 || changes.length < chosen.length || isNested) return null;
  return [asEdit(text, changes)];
}

function assignment(statement: string): { target: string; value: string } | null {
  const found = /^([\p{L}_][\p{L}\p{N}_.]*)\s*=\s*([^=].*)$/u.exec(statement);
  return found === null ? null : { target: found[1] ?? "", value: found[2] ?? "" };
}

function reassigned({ target, value }: { target: string; value: string }, text: string): Edit[] | null {
  const lines = text.split("\n");
  const at = lines.flatMap((line, row) => (assignment(splitComment(line).code.trim())?.target === target ? [row] : []));
  const [row] = at;
  const line = lines[row ?? -1];
  if (at.length !== 1 || row === undefined || line === undefined) return null;
  const added = `${/^\s*/.exec(line)?.[0] ?? ""}${target} = ${value}`;
  return added === line ? null : [{ at: row + 1, removed: [line], added: [added] }];
}

function wholeCall(expression: string): Call | null {
  const call = calls(expression)[0];
  return call !== undefined && call.from === 0 && call.to === expression.length ? call : null;
}

/** Whether a name means the same everywhere: classes and functions of modules do, methods do not. */
function isOwn(wanted: Call): boolean {
  return /^[A-Z]/.test(lastOf(wanted.callee)) || isOfModule(wanted.callee);
}

function isOfModule(name: string): boolean {
  return name.includes(".") && MODULES.test(name.split(".", 1)[0] ?? "");
}

function lastOf(name: string): string {
  return name.slice(name.lastIndexOf(".") + 1);
}

/** Whether a call in the file has the callee of the fix, under any import. */
function isSame(wanted: string, found: string): boolean {
  if (isOfModule(wanted)) return wanted === found || wanted.endsWith(`.${found}`);
  if (wanted.includes(".")) return found.includes(".") && lastOf(found) === lastOf(wanted);
  return lastOf(found) === wanted;
}

function touches(call: Call, text: string, line: number): boolean {
  return lineOf(text, call.from) <= line && line <= lineOf(text, call.to);
}

function lineOf(text: string, at: number): number {
  let line = 1;
  for (let next = text.indexOf("\n"); next !== -1 && next < at; next = text.indexOf("\n", next + 1)) line += 1;
  return line;
}

/** The file's call with the fix's arguments; null if the arguments do not match. */
function merge(wanted: Call, call: Call, text: string): Replacement | null {
  const isRest = wanted.args.some((argument) => argument.value === ELLIPSIS);
  const given = wanted.args.filter((argument) => argument.value !== ELLIPSIS);
  const byPlace = given.filter((argument) => argument.keyword === null);
  const byName = given.filter((argument) => argument.keyword !== null);
  if (!byName.every((argument) => isLiteral(argument.value) || isOfModule(argument.value))) return null;
  if (!isRest && byPlace.every((argument) => isLiteral(argument.value)) && byName.length === 0) {
    return changed(call.inside, given.map((argument) => argument.value).join(", "), text);
  }
  const standing = call.args.filter((argument) => argument.keyword === null).length;
  if (byName.length === 0 || (!isRest && byPlace.length !== standing)) return null;
  if (call.args.some((argument) => argument.value.startsWith("**"))) return null;
  return changed(call.inside, withKeywords(byName, call, text), text);
}

/** The arguments with some keywords set and the others unchanged. */
function withKeywords(wanted: readonly Argument[], call: Call, text: string): string {
  const inside = text.slice(call.inside.from, call.inside.to);
  const places: Replacement[] = [];
  const added: string[] = [];
  for (const argument of wanted) {
    const said = `${argument.keyword ?? ""}=${argument.value}`;
    const standing = call.args.find((known) => known.keyword === argument.keyword);
    if (standing === undefined) added.push(said);
    else places.push({ from: standing.from - call.inside.from, to: standing.to - call.inside.from, text: said });
  }
  if (added.length > 0) places.push(behindLast(added, call, inside));
  return applied(inside, places);
}

/** Formats new arguments like the last one: on its line, or on separate lines. */
function behindLast(added: readonly string[], call: Call, inside: string): Replacement {
  const last = call.args.at(-1);
  if (last === undefined) return { from: 0, to: 0, text: added.join(", ") };
  const at = last.to - call.inside.from;
  const indent = /\n([ \t]*)[^\n]*$/.exec(inside.slice(0, at))?.[1];
  if (indent === undefined) return { from: at, to: at, text: added.map((said) => `, ${said}`).join("") };
  if (!inside.slice(at).startsWith(",")) {
    return { from: at, to: at, text: added.map((said) => `,\n${indent}${said}`).join("") };
  }
  const end = inside.indexOf("\n", at) === -1 ? inside.length : inside.indexOf("\n", at);
  return { from: end, to: end, text: added.map((said) => `\n${indent}${said},`).join("") };
}

function applied(text: string, places: readonly Replacement[]): string {
  return [...places]
    .sort((a, b) => b.from - a.from)
    .reduce((done, place) => done.slice(0, place.from) + place.text + done.slice(place.to), text);
}

function changed(span: Span, text: string, whole: string): Replacement | null {
  return whole.slice(span.from, span.to) === text ? null : { ...span, text };
}

/** The edits of complete lines for some replacements. */
function asEdit(text: string, places: readonly Replacement[]): Edit {
  const from = Math.min(...places.map((place) => place.from));
  const to = Math.max(...places.map((place) => place.to));
  const begin = text.lastIndexOf("\n", from - 1) + 1;
  const end = text.indexOf("\n", to) === -1 ? text.length : text.indexOf("\n", to);
  const moved = places.map((place) => ({ ...place, from: place.from - begin, to: place.to - begin }));
  const old = text.slice(begin, end);
  return trimmed({ at: lineOf(text, from), removed: old.split("\n"), added: applied(old, moved).split("\n") });
}

/** The edit without unchanged lines at both ends. */
function trimmed({ at, removed, added }: Edit): Edit {
  const most = Math.min(removed.length, added.length);
  let head = 0;
  while (head < most && removed[head] === added[head]) head += 1;
  let tail = 0;
  while (tail < most - head && removed.at(-1 - tail) === added.at(-1 - tail)) tail += 1;
  return {
    at: at + head,
    removed: removed.slice(head, removed.length - tail),
    added: added.slice(head, added.length - tail),
  };
}

/** Inserts a module-level setting after the imports. */
function inserted(statement: string, lines: readonly string[]): Edit[] | null {
  const assigned = assignment(statement);
  const name = assigned?.target ?? wholeCall(statement)?.callee ?? "";
  const isSetting = assigned !== null
    ? isLiteral(assigned.value)
    : (wholeCall(statement)?.args.every((argument) => isLiteral(argument.value)) ?? false);
  if (!isSetting || !isOfModule(name)) return null;
  const root = name.split(".", 1)[0] ?? "";
  if (!lines.some((line) => new RegExp(`^import ${root}\\b`).test(line))) return null;
  return [{ at: lastImport(lines) + 1, removed: [], added: [statement] }];
}

/** The last line of the last top-level import. */
function lastImport(lines: readonly string[]): number {
  let last = 0;
  for (const [row, line] of lines.entries()) {
    if (!/^(?:import|from)\s/.test(line)) continue;
    last = row + 1;
    if (!line.includes("(") || line.includes(")")) continue;
    const close = lines.findIndex((next, at) => at > row && next.includes(")"));
    if (close !== -1) last = close + 1;
  }
  return last;
}

/** The edits in order, with those of the same line merged. */
function merged(found: readonly Edit[]): Edit[] {
  const ordered = [...found].sort((a, b) => a.at - b.at);
  const result: Edit[] = [];
  for (const edit of ordered) {
    const last = result.at(-1);
    if (last?.at !== edit.at) result.push(edit);
    else if (last.removed.length === 0 && edit.removed.length === 0) last.added.push(...edit.added);
    else return []; // two changes of one line that know nothing of each other
  }
  return result;
}
