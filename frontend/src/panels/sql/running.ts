// Runs the query in the address; another query, another panel and Cancel stop it on the server.

import { useCallback, useEffect, useReducer, useRef, useState } from "preact/hooks";
import type { Data } from "../../data/api.ts";
import { SqlError } from "../../data/sql.ts";
import type { SqlPlace, SqlResult } from "../../data/sql.ts";

type Progress =
  | { state: "idle" | "done" }
  | { state: "running"; since: number }
  | { state: "failed"; error: string; place: SqlPlace | null };

export type Asked = Progress & {
  /** The newest result, which stays while another query runs. */
  result: SqlResult | null;
  again: () => void;
  cancel: () => void;
};

export function useSql(data: Data, trace: string, query: string): Asked {
  const [progress, set] = useState<Progress>({ state: "idle" });
  const [result, setResult] = useState<SqlResult | null>(null);
  const [attempt, again] = useReducer((count: number) => count + 1, 0);
  const running = useRef<AbortController | null>(null);
  useEffect(() => {
    if (query.trim() === "") {
      set({ state: "idle" });
      setResult(null);
      return undefined;
    }
    const controller = new AbortController();
    running.current = controller;
    set({ state: "running", since: performance.now() });
    data.sql(trace, query, controller.signal).then(
      (found) => {
        if (controller.signal.aborted) return;
        setResult(found);
        set({ state: "done" });
      },
      (error: unknown) => {
        if (controller.signal.aborted) return;
        setResult(null);
        set(failed(error));
      },
    );
    return () => controller.abort();
  }, [data, trace, query, attempt]);
  const cancel = useCallback(() => {
    if (running.current === null || running.current.signal.aborted) return;
    running.current.abort();
    set((now) => (now.state === "running" ? { state: "failed", error: "the query was cancelled", place: null } : now));
  }, []);
  return { ...progress, result, again: () => again(undefined), cancel };
}

function failed(error: unknown): Progress {
  const text = error instanceof Error ? error.message : String(error);
  return { state: "failed", error: text, place: error instanceof SqlError ? error.place : null };
}
