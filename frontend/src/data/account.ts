// The types of the account of a step in the JSON of the advice, which docs/formats.md describes.

/** What the time of a step was spent on; null in the advice without steps. */
export interface AccountTexts {
  title: string;
  /** The step's time, and the words above it. */
  step: string;
  step_title: string;
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
  time: string;
  share: number;
  percent: string;
  text: string;
  verdict: "finding" | "needed" | "small" | "unexplained";
  verdict_text: string;
  /** The id of the finding that claims the time. */
  finding: string | null;
  reason: string;
}
