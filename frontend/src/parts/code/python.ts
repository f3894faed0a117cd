// A tokenizer of Python source for syntax colouring.

export type TokenKind = "keyword" | "string" | "comment" | "number" | "decorator" | "name" | "other";

export interface Token {
  kind: TokenKind;
  text: string;
}

const KEYWORDS = new Set(
  ("False None True and as assert async await break case class continue def del elif else except " +
    "finally for from global if import in is lambda match nonlocal not or pass raise return try " +
    "while with yield").split(" "),
);
/** Keywords at the start of a statement only; elsewhere they are names, such as `re.match`. */
const SOFT = new Set(["case", "match"]);

const SPACE = /\s+/y;
const COMMENT = /#.*/y;
const OPENING = /(?:[rbuft]|br|rb|fr|rf|tr|rt)?("""|'''|"|')/iy;
const NUMBER = /(?:0[xob][\da-f_]+|\d[\d_]*(?:\.[\d_]*)?(?:e[+-]?\d+)?j?|\.\d[\d_]*(?:e[+-]?\d+)?j?)/iy;
const DECORATOR = /@[\p{L}_][\p{L}\p{N}_.]*/uy;
const NAME = /[\p{L}_][\p{L}\p{N}_]*/uy;

/** The tokens of each line; a string that spans lines goes on from one to the next. */
export function tokens(lines: readonly string[]): Token[][] {
  let open: string | null = null;
  return lines.map((line) => {
    const cut = cutLine(line, open);
    open = cut.open;
    return cut.tokens;
  });
}

/** One line's tokens, and the quotes of the string that its end leaves open, if any. */
function cutLine(line: string, open: string | null): { tokens: Token[]; open: string | null } {
  const found: Token[] = [];
  let at = 0;
  const take = (kind: TokenKind, end: number): void => {
    found.push({ kind, text: line.slice(at, end) });
    at = end;
  };
  if (open !== null) {
    const end = closing(line, 0, open);
    take("string", end ?? line.length);
    if (end === null) return { tokens: found, open: staysOpen(line, open) };
  }
  while (at < line.length) {
    const opening = matched(OPENING, line, at);
    if (opening !== null) {
      const quotes = opening[1] ?? '"';
      const end = closing(line, at + opening[0].length, quotes);
      take("string", end ?? line.length);
      if (end === null) return { tokens: found, open: staysOpen(line, quotes) };
      continue;
    }
    const [kind, end] = plainToken(line, at);
    take(kind, end);
  }
  return { tokens: found, open: null };
}

/** Kind and end of the token that begins at `at` and is no string. */
function plainToken(line: string, at: number): [TokenKind, number] {
  const isFirst = line.slice(0, at).trim() === "";
  const ends = (rule: RegExp): number | null => {
    const match = matched(rule, line, at);
    return match === null ? null : at + match[0].length;
  };
  const space = ends(SPACE);
  if (space !== null) return ["other", space];
  const comment = ends(COMMENT);
  if (comment !== null) return ["comment", comment];
  const decorator = isFirst ? ends(DECORATOR) : null;
  if (decorator !== null) return ["decorator", decorator];
  const number = ends(NUMBER);
  if (number !== null) return ["number", number];
  const name = ends(NAME);
  if (name === null) return ["other", at + (line.codePointAt(at)! > 0xffff ? 2 : 1)];
  const word = line.slice(at, name);
  if (SOFT.has(word)) return [isFirst && /^\s+[^\s=.,)(]/.test(line.slice(name)) ? "keyword" : "name", name];
  return [KEYWORDS.has(word) ? "keyword" : "name", name];
}

function matched(rule: RegExp, line: string, at: number): RegExpExecArray | null {
  rule.lastIndex = at;
  return rule.exec(line);
}

/** Where a string ends whose quotes were opened before `from`; null if not on this line. */
function closing(line: string, from: number, quotes: string): number | null {
  for (let at = from; at < line.length; at += 1) {
    if (line[at] === "\\") at += 1;
    else if (line.startsWith(quotes, at)) return at + quotes.length;
  }
  return null;
}

/** Short strings go on only behind a backslash; what else is open at a line's end is broken off. */
function staysOpen(line: string, quotes: string): string | null {
  return quotes.length === 3 || line.endsWith("\\") ? quotes : null;
}
