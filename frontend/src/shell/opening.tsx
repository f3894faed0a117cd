// Opens a trace: how far the server is with reading it, and a way to leave.

import "./opening.css";
import { useEffect, useState } from "preact/hooks";
import type { Contents, Data, TraceInfo } from "../data/api.ts";
import { Empty } from "../parts/data/asking.tsx";
import { ProgressBar, stageText, useProgress } from "../parts/data/progress.tsx";
import { plain } from "../parts/text/plain.ts";

export type Opened =
  | { state: "opening"; leave: () => void }
  | { state: "open"; contents: Contents }
  | { state: "left"; again: () => void }
  | { state: "failed"; error: string; again: () => void };

type Outcome = Exclude<Opened, { state: "opening" }>;

/** Opens the trace; whoever goes to another one, or leaves, lets the server stop reading. */
export function useContents(data: Data, trace: TraceInfo): Opened {
  const [found, set] = useState<{ id: string; outcome: Outcome } | null>(null);
  const [times, setTimes] = useState(0);
  const [leave, setLeave] = useState<() => void>(() => () => undefined);
  useEffect(() => {
    const leaving = new AbortController();
    let isWanted = true;
    const again = () => {
      set(null);
      setTimes((known) => known + 1);
    };
    const tell = (outcome: Outcome) => isWanted && set({ id: trace.id, outcome });
    setLeave(() => () => leaving.abort());
    data.contents(trace.id, leaving.signal).then(
      (contents) => tell({ state: "open", contents }),
      (error: unknown) => {
        if (leaving.signal.aborted) tell({ state: "left", again });
        else tell({ state: "failed", error: error instanceof Error ? error.message : String(error), again });
      },
    );
    return () => {
      isWanted = false;
      leaving.abort();
    };
  }, [data, trace.id, trace.bytes, trace.modified, times]);
  return found?.id === trace.id ? found.outcome : { state: "opening", leave };
}

/** A trace that is read at once must not blink. */
const SLOW_MS = 400;

/** Shown in place of a panel until the trace is open. */
export function Opening(props: { data: Data; trace: TraceInfo; opened: Exclude<Opened, { state: "open" }> }) {
  const { data, trace, opened } = props;
  if (opened.state === "opening") return <Reading data={data} trace={trace} leave={opened.leave} />;
  const [title, text, button] =
    opened.state === "left"
      ? ["Opening was cancelled", "Nothing of the trace is shown.", "Open it"]
      : ["This cannot be shown", plain(opened.error), "Try again"];
  return (
    <div class="failed">
      <h1 class="visually-hidden">{plain(trace.name)}</h1>
      <Empty title={title} text={text}>
        <button type="button" onClick={opened.again}>{button}</button>
      </Empty>
    </div>
  );
}

function Reading(props: { data: Data; trace: TraceInfo; leave: () => void }) {
  const { data, trace, leave } = props;
  const [isSlow, set] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => set(true), SLOW_MS);
    return () => clearTimeout(timer);
  }, []);
  const progress = useProgress(isSlow ? data : null, trace.id);
  if (!isSlow) return <div class="waiting" role="status" data-slow="no" />;
  return (
    <div class="opening waiting">
      <h1>Opening {plain(trace.name)}</h1>
      <ProgressBar progress={progress} />
      <p role="status">{progress === null ? "Opening the trace" : stageText(progress)} …</p>
      <button type="button" onClick={leave}>Cancel</button>
    </div>
  );
}
