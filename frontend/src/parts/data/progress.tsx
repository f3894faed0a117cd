// How far the server is with reading what a panel waits for.

import "./progress.css";
import { createContext } from "preact";
import { useContext, useEffect, useState } from "preact/hooks";
import type { Data, Progress, TraceInfo } from "../../data/api.ts";
import { bytesText } from "../../units.ts";

/** The trace that is shown, for parts that wait for it; null outside of a trace. */
export const ShownTrace = createContext<{ data: Data; trace: TraceInfo } | null>(null);

/** Time between questions for the progress, in ms. */
const LOOK_MS = 300;

/** The progress, asked for again and again; null where nothing is read, as what is known is made. */
export function useProgress(data: Data | null, trace: string): Progress | null {
  const [progress, set] = useState<Progress | null>(null);
  useEffect(() => {
    if (data === null || data.inline) return undefined;
    let isWanted = true;
    let timer = 0 as unknown as ReturnType<typeof setTimeout>;
    function look() {
      data?.progress(trace).then(
        (found) => next(found),
        () => next(null), // the trace's own answer tells what is wrong
      );
    }
    function next(found: Progress | null) {
      if (!isWanted) return;
      set(found);
      timer = setTimeout(look, LOOK_MS);
    }
    look();
    return () => {
      isWanted = false;
      clearTimeout(timer);
    };
  }, [data, trace]);
  return progress;
}

/** The stage, and the bytes as long as they are read. */
export function stageText({ stage, done, total }: Progress): string {
  if (total === null) return `${stage}: ${bytesText(done)}`;
  return done >= total ? stage : `${stage}: ${bytesText(done)} of ${bytesText(total)}`;
}

/** A bar of the bytes; without an end where it is not known. */
export function ProgressBar({ progress }: { progress: Progress | null }) {
  const { done, total } = progress ?? { done: 0, total: null };
  const isOpen = total === null || done >= total;
  return <progress class="reading-bar" aria-label="Bytes read" max={total ?? 1} value={isOpen ? undefined : done} />;
}

/** What the server reads for a panel that waits, such as further ranks; else the given words. */
export function WaitingText({ otherwise }: { otherwise: string }) {
  const shown = useContext(ShownTrace);
  const progress = useProgress(shown?.data ?? null, shown?.trace.id ?? "");
  if (progress === null) return <p>{otherwise}</p>;
  return (
    <>
      <ProgressBar progress={progress} />
      <p>{stageText(progress)} …</p>
    </>
  );
}
