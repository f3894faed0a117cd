// Which traces and views there are; asked again when traces may have come.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import type { Data, TraceInfo, ViewSpec } from "../api.ts";
import type { Asked } from "../parts/asking.tsx";

export interface Known {
  traces: TraceInfo[];
  views: ReadonlyMap<string, ViewSpec>;
}

async function known(data: Data): Promise<Known> {
  const [traces, views] = await Promise.all([data.traces(), data.views()]);
  return { traces, views: new Map(views.map((view) => [view.name, view])) };
}

/** Between two questions for the traces, however often their list is opened. */
const REST_MS = 3_000;
/** A recording that ended since shows itself after this; a tab of TensorBoard is told of nothing. */
const LATER_MS = 20_000;

/** What is known, and what asks anew. Until the new answer is here the last one holds. */
export function useKnown(data: Data): [Asked<Known>, () => void] {
  const [asked, set] = useState<Asked<Known>>({ state: "waiting" });
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
  const isEmpty = asked.state === "failed" || (asked.state === "here" && !asked.value.traces.length);
  useEffect(() => {
    if (data.inline) return undefined;
    const look = () => document.visibilityState === "visible" && refresh();
    const timer = setInterval(look, isEmpty ? REST_MS + 1 : LATER_MS);
    return () => clearInterval(timer);
  }, [isEmpty, refresh]);
  return [asked, refresh];
}

function here(value: Known): Asked<Known> {
  return { state: "here", value, stale: false };
}

function failed(error: unknown): Asked<Known> {
  return { state: "failed", error: error instanceof Error ? error.message : String(error) };
}

function isSame(before: Asked<Known>, value: Known): boolean {
  if (before.state !== "here") return false;
  return JSON.stringify(before.value.traces) === JSON.stringify(value.traces);
}
