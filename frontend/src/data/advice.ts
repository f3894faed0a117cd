// The types of the advice and of a trace's health in the JSON of the page, which docs/formats.md describes.

import type { AccountTexts } from "./account.ts";
import type { FindingLinks } from "./numbers.ts";

export interface Where {
  file: string | null;
  line: number | null;
  function: string | null;
  how: "stamp" | "stack" | "static" | "definition" | "module" | "unknown";
}

export interface Saving {
  estimate_ms: number | null;
  low_ms: number | null;
  high_ms: number | null;
  upper_ms: number | null;
  speedup: number | null;
  method: "replay" | "model" | "none";
}

export interface Evidence {
  metric: string;
  value: number | null;
  unit: string;
  events: number[];
}

export interface Finding {
  rule: string;
  /** The finding's id. */
  id: string;
  covers: string[];
  title: string;
  where: Where;
  count_per_step: number | null;
  saving: Saving;
  confidence: "high" | "medium" | "low";
  semantics: "neutral" | "numerics" | "training";
  evidence: Evidence[];
  fix: { text: string; code: string | null };
}

/** The format `selftime.advice/1`, as `selftime advise --format json` prints it. */
export interface Advice {
  format: string;
  health: {
    verdict: Health["verdict"];
    notes: { check: string; text: string; value: number | null }[];
  };
  step: { count: number; device_ms: number | null; host_ms: number | null; regime: string | null } | null;
  findings: Finding[];
  joint: { estimate_ms: number | null; speedup: number | null } | null;
  checked: { rule: string; reason: string; upper_ms: number | null }[];
  unknown: { rule: string; needs: string }[];
  /** Texts about the advice, for the page only. */
  said: AdviceTexts;
}

/** The trace's health as a sentence, and notes on what limits the advice. */
export interface Health {
  verdict: "good" | "degraded" | "unusable";
  text: string;
  notes: string[];
}

/** The sentences that the command prints about the advice; the page shows them unchanged. */
export interface AdviceTexts {
  health: string;
  headline: Headline | null;
  /** What the whole run was spent on; null without the run's ledger. */
  run: string | null;
  account: AccountTexts | null;
  /** What a step of all ranks of the job is spent on, and which rank is late; null for one rank. */
  job: string | null;
  nothing_to_do: string | null;
  /** The largest unexplained rows of the account; empty where little is unexplained. */
  unexplained: string[];
  /** Texts of each finding, in the order of the findings. */
  findings: FindingTexts[];
  joint: string | null;
  checked_title: string;
  checked: { rule: string; text: string }[];
  /** A sentence with the number of causes that are absent. */
  absent: string | null;
  unknown_title: string;
  unknown: { text: string; rules: string[] }[];
  /** The output of `selftime advise --format markdown`. */
  markdown: string;
}

/** The step now and with all changes, on one basis, as texts. */
export interface Headline {
  title: string;
  now: string;
  /** The recorded step, host and device. */
  step: string;
  /** The step with all changes, its likely range, and the speed-up; null if no saving has an estimate. */
  after: string | null;
  range: string | null;
  speedup: string | null;
}

/** The step time now, with a change and with all changes, in ms without recording overhead. */
export interface StepWithFix {
  before_ms: number;
  after_ms: number;
  /** Lower and upper bound of the step with the change. */
  shortest_ms: number;
  longest_ms: number;
  /** Null unless several changes have an estimate. */
  with_all_ms: number | null;
  /** All of it as a sentence. */
  text: string;
}

export interface FindingTexts {
  /** File and line, empty if unknown; and the text after it. */
  line: string;
  place: string;
  /** Estimate, interval and speed-up; joined by spaces they form one sentence. */
  saving: string[];
  sureness: string;
  /** How the line is known, as a sentence; null if that is unknown. */
  line_evidence: string | null;
  /** The step before and after the change; null if unknown. */
  step: StepWithFix | null;
  /** Texts of each measurement, in the order of the finding's evidence. */
  evidence: { metric: string; value: string }[];
  slices: FindingLinks;
  /** The output of `selftime advise --finding ID --format markdown`. */
  markdown: string;
}
