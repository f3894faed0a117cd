// How a slice belongs to a finding or a row of the account, in words.

import type { NumberOfSlice } from "../../data/numbers.ts";
import { countText } from "../../units.ts";

/** The words before the title of the finding or row. */
export function relationText({ kind, relation, count }: Pick<NumberOfSlice, "kind" | "relation" | "count">): string {
  const what = kind === "row" ? "the row of the account" : "the finding";
  const slices = count === 1 ? "a slice" : `${countText(count)} slices`;
  switch (relation) {
    case "own": return kind === "row" ? "Row of the account:" : "Finding:";
    case "inside": return `Within a slice of ${what}:`;
    case "launched": return `Launched by a slice of ${what}:`;
    case "contains": return `Contains ${slices} of ${what}:`;
    case "launches": return `Launches ${slices} of ${what}:`;
  }
}
