// The rows of a listing: lines of the file as far as it is at hand, and lines with a cost (pure).

import type { Source } from "../../api.ts";
import type { Token } from "../../parts/python.ts";
import { tokens } from "../../parts/python.ts";
import type { Cost } from "./costs.ts";

export interface Row {
  /** Null where lines are left out, or where a cost is known and its line is not. */
  line: number | null;
  /** Null where the text is not at hand. */
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
  // The trace may know more of the file than there is of it now, or than a report carries.
  for (const cost of costs) {
    if (cost.line === null || !here.has(cost.line)) rows.push({ line: cost.line, tokens: null, cost });
  }
  rows.sort((a, b) => (a.line ?? Infinity) - (b.line ?? Infinity));
  return only || parts.length === 0 ? rows.filter((row) => row.cost !== undefined) : withGaps(rows);
}

/** The rows with one more wherever lines are left out. */
function withGaps(rows: readonly Row[]): Row[] {
  return rows.flatMap((row, at) => {
    const before = at === 0 ? 0 : (rows[at - 1]?.line ?? null);
    const isGap = row.line !== null && before !== null && row.line > before + 1;
    return isGap ? [{ line: null, tokens: null, cost: undefined }, row] : [row];
  });
}
