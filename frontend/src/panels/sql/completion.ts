// What a word of a query that is being written may become: tables, views, columns, words of SQL.

import type { SqlRelation } from "../../data/sql.ts";
import { FUNCTIONS, KEYWORDS, sqlTokens } from "./tokens.ts";

export interface Completion {
  text: string;
  /** What it is, in a word or two. */
  kind: string;
  doc: string;
}

/** The completions of the word before the caret, and where that word starts. */
export interface Completions {
  start: number;
  found: Completion[];
}

const MOST = 40;
const WORD = /(?:[\p{L}_][\p{L}\p{N}_]*\.)?[\p{L}_][\p{L}\p{N}_]*$|[\p{L}_][\p{L}\p{N}_]*\.$/u;

/** `isAsked` is for completions of an empty word, too. */
export function completions(
  query: string, caret: number, relations: readonly SqlRelation[], isAsked = false,
): Completions {
  const word = WORD.exec(query.slice(0, caret))?.[0] ?? "";
  const none = { start: caret, found: [] };
  if ((word === "" && !isAsked) || isWithinText(query, caret)) return none;
  const dot = word.lastIndexOf(".");
  const named = namedRelations(query, relations);
  const owner = dot < 0 ? undefined : named.get(word.slice(0, dot).toLowerCase());
  const candidates = owner === undefined
    ? everything(relations, [...new Set(named.values())])
    : owner.columns.map((column) => ({ text: column.name, kind: column.type, doc: column.doc }));
  const part = owner === undefined ? word : word.slice(dot + 1);
  const found = matching(candidates, part.toLowerCase());
  if (!isAsked && found.some((one) => one.text.toLowerCase() === part.toLowerCase())) return none;
  return { start: caret - part.length, found: found.slice(0, MOST) };
}

/** Those that begin with the part first, then those in which a word does. */
function matching(candidates: readonly Completion[], part: string): Completion[] {
  const begin = candidates.filter((one) => one.text.toLowerCase().startsWith(part));
  const within = candidates.filter((one) => {
    const text = one.text.toLowerCase();
    return !text.startsWith(part) && (text.includes(`_${part}`) || text.includes(`.${part}`));
  });
  return [...begin, ...within];
}

/** Columns of the relations that the query names come first: they are what is mostly meant. */
function everything(relations: readonly SqlRelation[], named: readonly SqlRelation[]): Completion[] {
  const found = new Map<string, Completion>();
  const add = (text: string, kind: string, doc: string) => {
    if (!found.has(text)) found.set(text, { text, kind, doc });
  };
  for (const relation of named) {
    for (const column of relation.columns) add(column.name, `${column.type} of ${relation.name}`, column.doc);
  }
  for (const { name, kind, doc } of relations) add(name, kind, doc);
  for (const word of KEYWORDS) add(word, "keyword", "");
  for (const word of FUNCTIONS) add(word, "function", "");
  return [...found.values()];
}

/** The relations that the query names, by their names and aliases in lower case. */
export function namedRelations(
  query: string, relations: readonly SqlRelation[],
): ReadonlyMap<string, SqlRelation> {
  const known = new Map(relations.map((relation) => [relation.name.toLowerCase(), relation]));
  const words = sqlTokens(query).filter((token) => token.kind !== "comment" && token.text.trim() !== "");
  const found = new Map<string, SqlRelation>();
  words.forEach((token, at) => {
    const [dot, second] = [words[at + 1], words[at + 2]];
    const isWord = token.kind === "name" || token.kind === "keyword"; // `tables.lines`
    const isPair = isWord && dot?.text.trim() === "." && second !== undefined;
    const pair = isPair ? known.get(`${token.text}.${second.text}`.toLowerCase()) : undefined;
    const relation = pair ?? (token.kind === "name" ? known.get(token.text.toLowerCase()) : undefined);
    if (relation === undefined) return;
    found.set(relation.name.toLowerCase(), relation);
    const after = at + (pair === undefined ? 1 : 3);
    const alias = words[after]?.text.toLowerCase() === "as" ? words[after + 1] : words[after];
    if (alias?.kind === "name") found.set(alias.text.toLowerCase(), relation);
  });
  return found;
}

/** Whether the caret is in a text or a comment, in which nothing is completed. */
function isWithinText(query: string, caret: number): boolean {
  const token = sqlTokens(query.slice(0, caret)).at(-1);
  if (token === undefined || (token.kind !== "string" && token.kind !== "comment")) return false;
  if (token.kind === "comment") return !token.text.endsWith("*/");
  return token.text.length === 1 || !token.text.endsWith("'");
}
