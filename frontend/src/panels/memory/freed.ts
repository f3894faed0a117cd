// The rows of the view `memory_lifetimes` that are of one row of the view `memory_peak` (pure).

import type { FullTable } from "../../parts/data/full-table.ts";
import { cell, number, textAt } from "../../parts/data/full-table.ts";

const KEYS = ["category", "operator", "module", "file", "line"] as const;

/** What tells a row from the others, as a word for the address. */
export function groupWord(table: FullTable, row: number): string {
  return KEYS.map((key) => cell(table, key, row) ?? "").join("|");
}

export interface Place {
  operator: string | null;
  file: string | null;
  line: number | null;
  bytes: number;
  blocks: number;
  /** Median time from allocation to release; null if not released. */
  median: number | null;
  longest: number | null;
  /** Whether the blocks are there until the recording ends. */
  lives: boolean;
}

/** Where the blocks of a group were released, the most bytes first. */
export function placesOf(table: FullTable, word: string): Place[] {
  const rows = Array.from({ length: table.rows }, (_, row) => row).filter((row) => groupWord(table, row) === word);
  const places = rows.map((row) => ({
    operator: textAt(table, "release_operator", row),
    file: textAt(table, "release_file", row),
    line: number(table, "release_line", row),
    bytes: number(table, "bytes", row) ?? 0,
    blocks: number(table, "blocks", row) ?? 0,
    median: number(table, "median_lifetime", row),
    longest: number(table, "longest_lifetime", row),
    lives: number(table, "alive", row) !== null,
  }));
  return places.sort((a, b) => b.bytes - a.bytes);
}
