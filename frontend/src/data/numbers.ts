// The types of the slices that numbers of the advice stand for, which docs/formats.md describes.

import type { Page } from "./api.ts";

/** A way to the slices of a number: their address, and how many there are. */
export interface NumberLink {
  of: string;
  text: string;
}

/** The links of a finding's numbers; null for those without slices. */
export interface FindingLinks {
  /** What the fix removes or shortens. */
  changed: NumberLink | null;
  count: NumberLink | null;
  evidence: (NumberLink | null)[];
}

/** A number of the advice that stands for slices. */
export interface AdviceNumber {
  /** Its address: `finding:ID`, `finding:ID:count`, `finding:ID:2` or `account:ID`. */
  of: string;
  kind: "changed" | "count" | "measured" | "row";
  /** The finding's title, or what the time of the row was spent on. */
  title: string;
  /** What of the finding the slices are; empty for a row. */
  what: string;
  /** What the finding saves, or the row's time. */
  detail: string;
  /** Parameters of the panel Answer that open the finding or the row. */
  answer: Record<string, string>;
  /** Whether the rule names these slices only as examples. */
  are_examples: boolean;
  slice_count: number;
  /** Time of the number that is of no slice: the number of stretches, and their sum in ns. */
  stretch_count: number;
  stretch_time: number;
  /** How many slices and stretches there are, in words. */
  text: string;
}

/** A number with its slices and stretches in order of time; of many, the longest. */
export interface NumberSlices extends AdviceNumber {
  slices: Page;
  stretches: Page;
}

/** How a slice belongs to a number: it is one of its slices, or by `count` others. */
export type Relation = "own" | "inside" | "launched" | "contains" | "launches";

export interface NumberOfSlice extends AdviceNumber {
  relation: Relation;
  count: number;
}

/** The numbers of an advice; of one that is not known, none. */
export interface KnownNumbers<T extends AdviceNumber> {
  known: boolean;
  numbers: T[];
}
