// Where in the traces of a job a rank's step is.

import type { Data, Job } from "../../api.ts";
import { stepSpan, STEP_COLUMNS } from "../../parts/stepspan.ts";
import { number, whole } from "../../parts/whole.ts";

/** The trace of a rank, as an address names it; that of the shown one if it has none. */
export function traceOf(job: Job, label: string): { trace?: string } {
  const trace = job.ranks.find((rank) => rank.label === label)?.traces[0]?.trace;
  return trace === undefined ? {} : { trace };
}

/** The trace in which a rank recorded a step, and when that was there; null if nothing tells it. */
export async function stepAt(
  data: Data, job: Job, label: string, step: number,
): Promise<Record<string, string> | null> {
  const traces = job.ranks.find((rank) => rank.label === label)?.traces ?? [];
  for (const { trace } of traces) {
    const steps = await whole(data, trace, "steps", {}, { columns: STEP_COLUMNS });
    for (let row = 0; row < steps.rows; row++) {
      const span = number(steps, "step", row) === step ? stepSpan(steps, row) : null;
      if (span !== null) return { trace, ...span };
    }
  }
  return null;
}
