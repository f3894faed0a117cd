// The rows of a listing: available lines of the file, and lines with a cost (pure).

import type { Source } from "../../data/api.ts";
import type { Token } from "../../parts/code/python.ts";
import { tokens } from "../../parts/code/python.ts";
import type { Cost } from "./costs.ts";

export interface Row {
  /** The line number; null for a gap, and for costs without a line. */
  line: number | null;
  /** The source text; null if unavailable. */
  tokens: readonly Token[] | null;
  cost: Cost | undefined;
}

export function rowsOf(costs: readonly Cost[], parts: readonly Source[], only: boolean): Row[] {
  const of = new Map(costs.map((cost) => [cost.line, cost]));
  const rows: Row[] = [];
  for (const part of parts) {
    tokens(part.lines).forEach((cut, at) => {
      rows.push({ line: part.from + at, tokens: cut, cost: of.get(part.from + at) });
    });
  }
  const here = new Set(rows.map((row) => row.line));
  // The trace may have costs of lines that the file or the report does not contain.
  for (const cost of costs) {
    if (cost.line === null || !here.has(cost.line)) rows.push({ line: cost.line, tokens: null, cost });
  }
  rows.sort((a, b) => (a.line ?? Infinity) - (b.line ?? Infinity));
  return only || parts.length === 0 ? rows.filter((row) => row.cost !== undefined) : withGaps(rows);
}

/** Adds a row wherever lines are left out. */
function withGaps(rows: readonly Row[]): Row[] {
  return rows.flatMap((row, at) => {
    const before = at === 0 ? 0 : (rows[at - 1]?.line ?? null);
    const isGap = row.line !== null && before !== null && row.line > before + 1;
    return isGap ? [{ line: null, tokens: null, cost: undefined }, row] : [row];
  });
}
