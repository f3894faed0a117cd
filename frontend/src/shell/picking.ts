// Finds the trace for a chosen run, worker or span.

import type { TraceInfo } from "../data/api.ts";

export type Level = "run" | "worker" | "span";

export interface Choices {
  run: string[];
  worker: string[];
  span: string[];
}

/** The choices at each level. */
export function levelChoices(traces: readonly TraceInfo[], shown: TraceInfo): Choices {
  const ofRun = traces.filter((known) => known.run === shown.run);
  const ofWorker = ofRun.filter((known) => known.worker === shown.worker);
  return {
    run: distinct(traces.map((known) => known.run)),
    worker: distinct(ofRun.map((known) => known.worker)),
    span: distinct(ofWorker.map((known) => known.span)),
  };
}

function distinct(words: readonly string[]): string[] {
  return [...new Set(words)];
}

/** Whether run, worker and span identify each trace; otherwise traces are chosen by name. */
export function areDistinct(traces: readonly TraceInfo[]): boolean {
  const keys = traces.map((known) => JSON.stringify([known.run, known.worker, known.span]));
  return new Set(keys).size === traces.length;
}

/** The trace with the chosen run, worker or span that is most similar to the current one. */
export function pickTrace(
  traces: readonly TraceInfo[],
  shown: TraceInfo,
  level: Level,
  value: string,
): TraceInfo | undefined {
  const order: readonly Level[] = ["run", "worker", "span"];
  const above = order.slice(0, order.indexOf(level));
  const likeness = (known: TraceInfo) =>
    (known.worker === shown.worker ? 2 : 0) + (known.span === shown.span ? 1 : 0);
  return traces
    .filter((known) => known[level] === value)
    .filter((known) => above.every((higher) => known[higher] === shown[higher]))
    .reduce<TraceInfo | undefined>(
      (best, known) => (best === undefined || likeness(known) > likeness(best) ? known : best),
      undefined,
    );
}
