// Which trace is meant when one of run, worker and span is chosen.

import type { TraceInfo } from "../api.ts";

export type Level = "run" | "worker" | "span";

export interface Choices {
  run: string[];
  worker: string[];
  span: string[];
}

/** What can be chosen at each level, beside the shown trace. */
export function choices(traces: readonly TraceInfo[], shown: TraceInfo): Choices {
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

/** Whether the levels tell all traces apart; if not, they are chosen by their names. */
export function tellsApart(traces: readonly TraceInfo[]): boolean {
  const keys = traces.map((known) => JSON.stringify([known.run, known.worker, known.span]));
  return new Set(keys).size === traces.length;
}

/** The trace with that run, worker or span, and otherwise as much like the shown one as possible. */
export function picked(
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
