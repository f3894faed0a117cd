// The types of the accounts of a step and of a job in the JSON of the page, which docs/formats.md describes.

import type { NumberLink } from "./numbers.ts";

/** What the time of a step was spent on; null in the advice without steps. */
export interface AccountTexts {
  title: string;
  /** The time that is divided, and what time that is. */
  step: string;
  basis: string;
  bound_by: string;
  /** The largest classes with their lines. */
  spent: string;
  /** How much each verdict has of the step. */
  totals: string;
  /** The classes of time, largest first. */
  parts: AccountPart[];
  rows: AccountRow[];
  /** The number of rows, from the first, that are shown one by one. */
  shown: number;
  kinds_title: string;
  /** The kinds of steps; empty if all steps are alike. */
  kinds: AccountKind[];
}

/** What the steps of one kind are spent on. */
export interface AccountKind {
  name: string;
  count: string;
  time: string;
  bound_by: string;
  spent: string;
  parts: AccountPart[];
}

/** The time of one class. */
export interface AccountPart {
  class: string;
  label: string;
  share: number;
  text: string;
}

export interface AccountRow {
  class: string;
  /** What the time was spent on. */
  what: string;
  /** The name of what ran or the number of places; null if the line tells enough. */
  name: string | null;
  /** The line; null if none is known. */
  line: string | null;
  file: string | null;
  line_number: number | null;
  /** Most of the time that a change could save; null if unknown. */
  at_most: string | null;
  time: string;
  share: number;
  percent: string;
  /** The whole row as a phrase. */
  text: string;
  verdict: "finding" | "needed" | "small" | "unexplained";
  verdict_text: string;
  /** The id of the finding that claims the time. */
  finding: string | null;
  reason: string;
  /** The slices that the time was spent in; null if there are none. */
  slices: NumberLink | null;
}

/** What the steps of a job's ranks are spent on; null unless the steps of two ranks are known. */
export interface JobAccount {
  title: string;
  /** The mean step of all ranks, and the words above it. */
  step: string;
  step_title: string;
  /** The largest classes, with their ranges over the ranks. */
  spent: string;
  /** The rank that the others wait for, and a sentence why; null if there is none. */
  late: { label: string; text: string } | null;
  /** The classes of time, largest first, with the mean of all ranks; `small` are all others. */
  parts: { class: string; label: string; text: string }[];
  /** By rank: the time in ns of each part, in their order. */
  ranks: { label: string; times: number[] }[];
}
