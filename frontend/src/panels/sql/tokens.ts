// A tokenizer of SQL for syntax colouring; together the tokens are the whole text.

export type SqlTokenKind = "keyword" | "string" | "comment" | "number" | "name" | "other";

export interface SqlToken {
  kind: SqlTokenKind;
  text: string;
  start: number;
}

export const KEYWORDS: readonly string[] = (
  "select from where group by having order limit offset join left right full inner outer cross on " +
  "using as and or not in is null like ilike between case when then else end distinct union all " +
  "with over partition asc desc true false show tables explain except intersect exists cast"
).split(" ");

/** Functions that are often needed; Polars has more. */
export const FUNCTIONS: readonly string[] = (
  "count sum avg min max median stddev quantile_cont first last abs round floor ceil coalesce " +
  "nullif length lower upper substr starts_with ends_with replace concat row_number rank"
).split(" ");

const KNOWN = new Set(KEYWORDS);

const PATTERNS: readonly (readonly [SqlTokenKind, RegExp])[] = [
  ["comment", /--[^\n]*|\/\*[^]*?(?:\*\/|$)/y],
  ["string", /'(?:[^']|'')*(?:'|$)/y],
  ["name", /"[^"]*(?:"|$)|`[^`]*(?:`|$)|[\p{L}_][\p{L}\p{N}_]*/uy],
  ["number", /\d+(?:\.\d+)?(?:e[+-]?\d+)?/iy],
];

export function sqlTokens(text: string): SqlToken[] {
  const found: SqlToken[] = [];
  for (let at = 0; at < text.length; ) {
    const token = tokenAt(text, at);
    const last = found.at(-1);
    if (token.kind === "other" && last?.kind === "other") last.text += token.text;
    else found.push(token);
    at += token.text.length;
  }
  return found;
}

function tokenAt(text: string, at: number): SqlToken {
  for (const [kind, pattern] of PATTERNS) {
    pattern.lastIndex = at;
    const word = pattern.exec(text)?.[0];
    if (word === undefined) continue;
    const isKeyword = kind === "name" && KNOWN.has(word.toLowerCase());
    return { kind: isKeyword ? "keyword" : kind, text: word, start: at };
  }
  return { kind: "other", text: text.charAt(at), start: at };
}
