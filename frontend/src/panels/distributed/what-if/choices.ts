// What the job is computed without, by the reader's choice, and what that takes (pure).

import { number, textAt } from "../../../parts/data/full-table.ts";
import type { FullTable } from "../../../parts/data/full-table.ts";
import { millisecondsText, timeText } from "../../../units.ts";

/** What stands between the changes of a row of the view `job_what_if`. */
const SEPARATOR = ", ";

export interface Switch {
  change: string;
  title: string;
  doc: string;
  /** What the change alone saves, in ns; less than 0 is a loss. */
  alone: { least: number; most: number };
}

const DOCS: Readonly<Record<string, string>> = {
  "slow ranks": "Each rank takes as long for its work as its peers: the ranks of its stage, or all",
  "unequal stages": "Each stage of the pipeline has as much to compute as the mean stage",
  "unequal micro-batches": "The same work takes as long each time",
};
const TRANSFERS = "transfers of ";

/** A switch for each change that stands alone in a row. */
export function switchesOf(table: FullTable): Switch[] {
  return rowsOf(table).filter((row) => number(table, "changes", row) === 1).map((row) => {
    const change = textAt(table, "without", row) ?? "";
    return { change, title: titleOf(change), doc: docOf(change), alone: savingAt(table, row) };
  });
}

function titleOf(change: string): string {
  return change.startsWith(TRANSFERS) ? `data of ${change.slice(TRANSFERS.length)} in no time` : `no ${change}`;
}

function docOf(change: string): string {
  if (!change.startsWith(TRANSFERS)) return DOCS[change] ?? "";
  return `The transfers of these process groups take no time; the ranks still wait for each other`;
}

function rowsOf(table: FullTable): number[] {
  return [...Array(table.rows).keys()];
}

/** The switched changes in the address that the job can be computed without, in their order. */
export function parseSwitched(words: string | undefined, switches: readonly Switch[]): string[] {
  const asked = new Set((words ?? "").split(",").map((word) => word.trim()));
  return switches.map(({ change }) => change).filter((change) => asked.has(change));
}

export function toggled(chosen: readonly string[], change: string, switches: readonly Switch[]): string[] {
  const left = chosen.includes(change) ? chosen.filter((one) => one !== change) : [...chosen, change];
  return switches.map((one) => one.change).filter((one) => left.includes(one));
}

export function formatSwitched(chosen: readonly string[]): string | undefined {
  return chosen.length === 0 ? undefined : chosen.join(SEPARATOR);
}

/** The row without all of the changes together; null if the table has none. */
export function rowWithout(table: FullTable, chosen: readonly string[]): number | null {
  const words = chosen.join(SEPARATOR);
  return rowsOf(table).find((row) => (textAt(table, "without", row) ?? "") === words) ?? null;
}

function savingAt(table: FullTable, row: number): { least: number; most: number } {
  return { least: number(table, "least_saving", row) ?? 0, most: number(table, "most_saving", row) ?? 0 };
}

export interface Predicted {
  /** The step as it is and with the changes, in ns. */
  before: number;
  least: number;
  most: number;
  text: string;
  alone: string | null;
}

/** What a row means: the step after, and why that is no sum of what each change saves. */
export function predictedAt(table: FullTable, row: number, switches: readonly Switch[], chosen: readonly string[]): Predicted | null {
  const now = rowWithout(table, []);
  const before = now === null ? null : number(table, "step_time", now);
  if (before === null) return null;
  const { least, most } = savingAt(table, row);
  const each = switches.filter(({ change }) => chosen.includes(change)).map(({ alone }) => savingText(alone));
  return {
    before,
    least: before - most,
    most: before - least,
    text: `A step of ${millisecondsText(before / 1e6)} would ${changeText(least, most)}`,
    alone: each.length < 2 ? null : `Alone they would save ${each.slice(0, -1).join(", ")} and ${each.at(-1)}; savings do not add up, so all are computed at once.`,
  };
}

/** Savings that are less than this share of a µs are none. */
const NOTHING = 500;

function changeText(least: number, most: number): string {
  if (Math.abs(least) < NOTHING && Math.abs(most) < NOTHING) return "take as long.";
  if (most <= 0) return `take ${timeText(-most)} more.`;
  return `save ${savingText({ least, most })}.`;
}

/** A saving in ns as text; a range if it is not known exactly. */
export function savingText({ least, most }: { least: number; most: number }): string {
  const words = (time: number) => (Math.abs(time) < NOTHING ? "0 ms" : time < 0 ? `−${timeText(-time)}` : timeText(time));
  const [low, high] = [words(least), words(most)];
  return low === high ? low : `${low} to ${high}`;
}
