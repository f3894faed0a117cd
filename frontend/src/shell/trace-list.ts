// Loads the lists of traces and views, and refreshes them.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import type { Data, TraceInfo, ViewSpec } from "../data/api.ts";
import type { QueryState } from "../parts/data/asking.tsx";

export interface TraceList {
  traces: TraceInfo[];
  views: ReadonlyMap<string, ViewSpec>;
}

async function known(data: Data): Promise<TraceList> {
  const [traces, views] = await Promise.all([data.traces(), data.views()]);
  return { traces, views: new Map(views.map((view) => [view.name, view])) };
}

/** Shortest time between refreshes, in ms. */
const REST_MS = 3_000;
/** Time between automatic refreshes, in ms. */
const LATER_MS = 20_000;

/**
 * Returns the lists and a function to refresh them. As long as the trace that is named is not in the
 * list, it is asked for more often: its file may just be written, or found.
 */
export function useTraceList(data: Data, named: string | undefined): [QueryState<TraceList>, () => void] {
  const [asked, set] = useState<QueryState<TraceList>>({ state: "waiting" });
  const last = useRef(-Infinity);
  const refresh = useCallback(() => {
    if (performance.now() - last.current < REST_MS) return;
    last.current = performance.now();
    known(data).then(
      (value) => set((before) => (isSame(before, value) ? before : here(value))),
      (error: unknown) => set((before) => (before.state === "here" ? before : failed(error))),
    );
  }, [data]);
  useEffect(() => {
    const shownAgain = () => document.visibilityState === "visible" && refresh();
    refresh();
    document.addEventListener("visibilitychange", shownAgain);
    return () => document.removeEventListener("visibilitychange", shownAgain);
  }, [refresh]);
  const traces = asked.state === "here" ? asked.value.traces : [];
  const isLacking = named !== undefined && !traces.some((trace) => trace.id === named);
  const isEmpty = asked.state !== "waiting" && (traces.length === 0 || isLacking);
  useEffect(() => {
    if (data.inline) return undefined;
    const look = () => document.visibilityState === "visible" && refresh();
    const timer = setInterval(look, isEmpty ? REST_MS + 1 : LATER_MS);
    return () => clearInterval(timer);
  }, [isEmpty, refresh]);
  return [asked, refresh];
}

function here(value: TraceList): QueryState<TraceList> {
  return { state: "here", value, stale: false };
}

function failed(error: unknown): QueryState<TraceList> {
  return { state: "failed", error: error instanceof Error ? error.message : String(error) };
}

function isSame(before: QueryState<TraceList>, value: TraceList): boolean {
  if (before.state !== "here") return false;
  return JSON.stringify(before.value.traces) === JSON.stringify(value.traces);
}
