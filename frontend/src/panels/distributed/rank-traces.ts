// Finds the trace and time of a rank's step.

import type { Data, Job } from "../../data/api.ts";
import { stepSpan, STEP_COLUMNS } from "../../parts/steps/stepspan.ts";
import { number, loadTable } from "../../parts/data/full-table.ts";

/** The id of a rank's trace; by default the shown trace's. */
export function traceOf(job: Job, label: string): { trace?: string } {
  const trace = job.ranks.find((rank) => rank.label === label)?.traces[0]?.trace;
  return trace === undefined ? {} : { trace };
}

/** The trace in which a rank recorded a step, and its time; null if unknown. */
export async function stepAt(
  data: Data, job: Job, label: string, step: number,
): Promise<Record<string, string> | null> {
  const traces = job.ranks.find((rank) => rank.label === label)?.traces ?? [];
  for (const { trace } of traces) {
    const steps = await loadTable(data, trace, "steps", {}, { columns: STEP_COLUMNS });
    for (let row = 0; row < steps.rows; row++) {
      const span = number(steps, "step", row) === step ? stepSpan(steps, row) : null;
      if (span !== null) return { trace, ...span };
    }
  }
  return null;
}
