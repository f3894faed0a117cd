// Finds calls and their arguments in Python source by tokens, to change an argument.

import { tokens } from "../../../parts/code/python.ts";
import type { TokenKind } from "../../../parts/code/python.ts";

/** A range of characters of a text. */
export interface Span {
  from: number;
  to: number;
}

export interface Argument extends Span {
  /** The keyword; null for a positional argument. */
  keyword: string | null;
  value: string;
}

export interface Call extends Span {
  /** The dotted name of the callee, such as `x.to`; only `to` after brackets. */
  callee: string;
  args: Argument[];
  /** The range between the brackets. */
  inside: Span;
}

interface Placed extends Span {
  kind: TokenKind;
  text: string;
}

const OPENS = "([{";
const CLOSES = ")]}";

function placed(text: string): Placed[] {
  const found: Placed[] = [];
  let from = 0;
  for (const line of tokens(text.split("\n"))) {
    for (const token of line) {
      found.push({ ...token, from, to: from + token.text.length });
      from += token.text.length;
    }
    from += 1;
  }
  return found;
}

/** Returns the calls in a text, by position; definitions do not count. */
export function calls(text: string): Call[] {
  const all = placed(text).filter((token) => token.kind !== "comment" && token.text.trim() !== "");
  const found: Call[] = [];
  for (const [at, token] of all.entries()) {
    if (token.kind !== "name" || all[at + 1]?.text !== "(") continue;
    const first = calleeBegin(all, at);
    if (/^(?:def|class)$/.test(all[first - 1]?.text ?? "")) continue;
    const end = partner(all, at + 1);
    if (end === null) continue;
    const inner = all.slice(at + 2, end);
    found.push({
      callee: all.slice(first, at + 1).map((part) => part.text).join(""),
      from: all[first]?.from ?? token.from,
      to: all[end]?.to ?? token.to,
      inside: { from: all[at + 1]?.to ?? token.to, to: all[end]?.from ?? token.to },
      args: split(inner).map((argument) => read(argument, text)),
    });
  }
  return found;
}

/** The start of the dotted name that ends at `at`. */
function calleeBegin(all: readonly Placed[], at: number): number {
  let first = at;
  while (all[first - 1]?.text === "." && all[first - 2]?.kind === "name") first -= 2;
  return first;
}

/** The closing bracket for the one at `open`; null if there is none. */
function partner(all: readonly Placed[], open: number): number | null {
  let depth = 0;
  for (let at = open; at < all.length; at += 1) {
    const { kind, text } = all[at] as Placed;
    if (kind !== "other") continue;
    if (OPENS.includes(text)) depth += 1;
    if (CLOSES.includes(text)) depth -= 1;
    if (depth === 0) return at;
  }
  return null;
}

/** Splits tokens at commas that are not inside brackets. */
function split(inner: readonly Placed[]): Placed[][] {
  const parts: Placed[][] = [[]];
  let depth = 0;
  for (const token of inner) {
    if (token.kind === "other" && OPENS.includes(token.text)) depth += 1;
    if (token.kind === "other" && CLOSES.includes(token.text)) depth -= 1;
    if (token.text === "," && depth === 0) parts.push([]);
    else parts.at(-1)?.push(token);
  }
  return parts.filter((part) => part.length > 0);
}

function read(parts: readonly Placed[], text: string): Argument {
  const [first, second, third] = parts;
  const from = first?.from ?? 0;
  const to = parts.at(-1)?.to ?? from;
  const hasKeyword = first?.kind === "name" && second?.text === "=" && third?.text !== "=";
  if (!hasKeyword) return { keyword: null, value: text.slice(from, to), from, to };
  return { keyword: first.text, value: text.slice(third?.from ?? to, to), from, to };
}

/** Whether a value is a literal, without names. */
export function isLiteral(value: string): boolean {
  return placed(value).every(
    (token) => token.kind !== "name" && token.kind !== "decorator" && token.text !== "...",
  );
}

/** Splits a line into code and comment. */
export function splitComment(line: string): { code: string; remark: string } {
  const remark = placed(line).find((token) => token.kind === "comment");
  if (remark === undefined) return { code: line.trimEnd(), remark: "" };
  return { code: line.slice(0, remark.from).trimEnd(), remark: remark.text };
}
