// What the views know of a trace before the rules have been asked: health, the step, what bounds it.

import type { Advice, Data } from "../../api.ts";
import { STEP_COLUMNS, stepSpan } from "../../parts/stepspan.ts";
import { countedRows, meanParts } from "../../parts/stepparts.ts";
import type { StepPart } from "../../parts/stepparts.ts";
import { number, textAt, whole } from "../../parts/whole.ts";
import type { Whole } from "../../parts/whole.ts";

/** The mean step by what it goes into. */
export type Mix = readonly { part: StepPart; mean: number }[];

export interface Background {
  health: Advice["health"];
  mix: Mix;
  /** Median device time of the counted steps, else their host time, in ms: as the advice has it. */
  typical: number | null;
  /** What bounds the step, as a word, and what that means. */
  regime: string | null;
  meaning: string | null;
  hasDevice: boolean;
  /** The first counted step in the timeline. */
  range: { from: string; to: string } | null;
}

const MOST_STEPS = 10_000;

export async function background(data: Data, trace: string): Promise<Background> {
  const [health, steps, overview] = await Promise.all([
    whole(data, trace, "health"),
    whole(data, trace, "steps", {}, { columns: STEP_COLUMNS }, MOST_STEPS),
    whole(data, trace, "overview"),
  ]);
  const counted = countedRows(steps.columns["counted"] ?? []);
  const [first] = counted;
  const metrics = (overview.columns["metric"] ?? []).map(String);
  const median = (time: string) => number(overview, "value", metrics.indexOf(`${time} time, median`));
  const typical = median("device") ?? median("host");
  const regime = metrics.indexOf("regime");
  return {
    health: healthOf(health),
    mix: meanParts(steps.columns, counted),
    typical: typical === null ? null : typical / 1e6,
    regime: textAt(overview, "text", regime),
    meaning: textAt(overview, "definition", regime),
    hasDevice: (overview.columns["section"] ?? []).includes("device"),
    range: first === undefined ? null : stepSpan(steps, first),
  };
}

/** The health of the advice: the worst verdict, and what is less than good. */
function healthOf(table: Whole): Advice["health"] {
  const verdicts = (table.columns["verdict"] ?? []).map(String);
  const verdict = (["unusable", "degraded"] as const).find((word) => verdicts.includes(word)) ?? "good";
  const notes = [...verdicts.keys()]
    .filter((row) => verdicts[row] !== "good")
    .map((row) => ({
      check: textAt(table, "check", row) ?? "",
      text: textAt(table, "text", row) ?? "",
      value: number(table, "value", row),
    }));
  return { verdict, notes };
}
