// Whether the traces belong together; those that do not are listed, and never compared unasked.

import type { TraceInfo } from "../../data/api.ts";

/** Files outside of a folder are named one by one: two are a pair to compare. */
const PAIR = 2;

/** Whether some folder holds traces of several jobs; `are_unrelated` of the server is the same. */
export function areUnrelated(traces: readonly TraceInfo[]): boolean {
  const jobs = new Map<string, Set<string>>();
  for (const { run, job } of traces) jobs.set(run, (jobs.get(run) ?? new Set<string>()).add(job));
  return [...jobs].some(([run, found]) => found.size > (run === "" ? PAIR : 1));
}
