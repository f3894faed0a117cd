// The queries in the address that are shown as tracks: `track=` has them, each ended by a semicolon.

import type { SqlColumn } from "../../../data/sql.ts";
import { sqlTokens } from "../../sql/tokens.ts";
import { MOST_QUERIES } from "./sources.ts";

/** The queries of a text, which semicolons outside quotes and comments separate. */
export function queriesOf(text: string | undefined): string[] {
  const found = [""];
  for (const token of sqlTokens(text ?? "")) {
    const [first = "", ...others] = token.kind === "other" ? token.text.split(";") : [token.text];
    found[found.length - 1] += first;
    found.push(...others);
  }
  return [...new Set(found.map((query) => query.trim()).filter(Boolean))].slice(0, MOST_QUERIES);
}

/** Queries as the text of the address; undefined for none. */
export function queriesText(queries: readonly string[]): string | undefined {
  return queries.length === 0 ? undefined : queries.join("\n;\n"); // a query may end with a comment of a line
}

/** The address with one query more or less. */
export function withQuery(text: string | undefined, query: string): string | undefined {
  return queriesText(queriesOf(`${text ?? ""}\n;\n${query}`));
}

export function withoutQuery(text: string | undefined, query: string): string | undefined {
  return queriesText(queriesOf(text).filter((one) => one !== query));
}

/** The comment with which a query begins, else the query on one line. */
export function titleOf(query: string): string {
  const [first = ""] = query.trim().split("\n", 1);
  const comment = first.startsWith("--") ? first.slice(2).trim() : "";
  return comment || query.replaceAll(/\s+/g, " ").trim();
}

const STARTS = new Set(["start", "start_ns", "time", "time_ns"]);
const LENGTHS = new Set(["duration", "duration_ns", "value"]);

/** Whether the columns of a result make a track: a start, and a duration or the value of a counter. */
export function isTrack(columns: readonly SqlColumn[]): boolean {
  const numbers = columns.filter(({ type }) => type === "integer" || type === "number").map(({ name }) => name);
  return numbers.some((name) => STARTS.has(name)) && numbers.some((name) => LENGTHS.has(name));
}
