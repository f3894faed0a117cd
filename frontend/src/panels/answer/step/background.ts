// Facts about a trace that are known before the advice: health, the step, and what limits it.

import type { Health } from "../../../data/advice.ts";
import type { Data } from "../../../data/api.ts";
import { STEP_COLUMNS, stepSpan } from "../../../parts/steps/stepspan.ts";
import { countedRows, meanParts } from "../../../parts/steps/stepparts.ts";
import type { StepPart } from "../../../parts/steps/stepparts.ts";
import { number, textAt, loadTable } from "../../../parts/data/full-table.ts";

/** The mean step time by category. */
export type Mix = readonly { part: StepPart; mean: number }[];

export interface Background {
  health: Health;
  mix: Mix;
  /** Median device time of the counted steps, else their host time, in ms: as the advice has it. */
  typical: number | null;
  /** What limits the step, and what that means. */
  bound: string | null;
  meaning: string | null;
  hasDevice: boolean;
  /** The first counted step in the timeline. */
  range: { from: string; to: string } | null;
}

const MOST_STEPS = 10_000;

export async function background(data: Data, trace: string): Promise<Background> {
  const [health, steps, overview] = await Promise.all([
    data.health(trace),
    loadTable(data, trace, "steps", {}, { columns: STEP_COLUMNS }, MOST_STEPS),
    loadTable(data, trace, "overview"),
  ]);
  const counted = countedRows(steps.columns["counted"] ?? []);
  const [first] = counted;
  const metrics = (overview.columns["metric"] ?? []).map(String);
  const median = (time: string) => number(overview, "value", metrics.indexOf(`${time} time, median`));
  const typical = median("device") ?? median("host");
  const bound = metrics.indexOf("bound by");
  return {
    health,
    mix: meanParts(steps.columns, counted),
    typical: typical === null ? null : typical / 1e6,
    bound: textAt(overview, "text", bound),
    meaning: textAt(overview, "definition", bound),
    hasDevice: (overview.columns["section"] ?? []).includes("device"),
    range: first === undefined ? null : stepSpan(steps, first),
  };
}
