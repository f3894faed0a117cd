// Calls in Python source and what they are given, found by tokens: enough to change an argument.

import { tokens } from "../../parts/python.ts";
import type { TokenKind } from "../../parts/python.ts";

/** A part of a text, from and to by character. */
export interface Span {
  from: number;
  to: number;
}

export interface Argument extends Span {
  /** Null where it is given by position. */
  keyword: string | null;
  value: string;
}

export interface Call extends Span {
  /** What is called, dotted, as far as it is names: `x.to`, or only `to` behind brackets. */
  callee: string;
  args: Argument[];
  /** What stands between the brackets. */
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

/** Every call of a text, in order of where it begins. Definitions are none. */
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

/** Where the dotted name begins that ends at `at`. */
function calleeBegin(all: readonly Placed[], at: number): number {
  let first = at;
  while (all[first - 1]?.text === "." && all[first - 2]?.kind === "name") first -= 2;
  return first;
}

/** The bracket that closes the one at `open`; null if none does. */
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

/** Tokens between commas that stand in no bracket of their own. */
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

/** Whether a value is written down in full: no name in it stands for something else. */
export function isLiteral(value: string): boolean {
  return placed(value).every(
    (token) => token.kind !== "name" && token.kind !== "decorator" && token.text !== "...",
  );
}

/** The code of a line without the remark behind it, and that remark. */
export function withoutRemark(line: string): { code: string; remark: string } {
  const remark = placed(line).find((token) => token.kind === "comment");
  if (remark === undefined) return { code: line.trimEnd(), remark: "" };
  return { code: line.slice(0, remark.from).trimEnd(), remark: remark.text };
}
