// Loads data, and shows loading, result and error states.

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { NotInReport } from "../../data/api.ts";
import { plain } from "../text/plain.ts";
import { WaitingText } from "./progress.tsx";

export type QueryState<T> =
  | { state: "waiting" }
  | { state: "here"; value: T; stale: boolean }
  | { state: "failed"; error: string; again?: () => void };

/**
 * The answer to a question that is asked again whenever `key` changes. Until the new answer is here
 * the last one stays, marked as stale.
 */
export function useQuery<T>(ask: () => Promise<T>, key: string): QueryState<T> {
  const [asked, set] = useState<{ key: string; answer: QueryState<T> }>({
    key,
    answer: { state: "waiting" },
  });
  const [times, setTimes] = useState(0);
  useEffect(() => {
    let wanted = true;
    const again = () => {
      set({ key, answer: { state: "waiting" } });
      setTimes((known) => known + 1);
    };
    ask().then(
      (value) => wanted && set({ key, answer: { state: "here", value, stale: false } }),
      (error: unknown) =>
        wanted && set({ key, answer: { state: "failed", error: sentence(error), ...repeated(error, again) } }),
    );
    return () => {
      wanted = false;
    };
  }, [key, times]);
  const { answer } = asked;
  if (asked.key !== key && answer.state === "here") return { ...answer, stale: true };
  if (asked.key !== key) return { state: "waiting" };
  return answer;
}

/** Sends the request again; undefined if that would not help. */
function repeated(error: unknown, again: () => void): { again?: () => void } {
  return error instanceof NotInReport ? {} : { again };
}

function sentence(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Renders the result, or a loading or error state; `what` names the data. */
export function QueryResult<T>(props: {
  asked: QueryState<T>;
  what?: string;
  children: (value: T) => ComponentChildren;
}) {
  const { asked } = props;
  if (asked.state === "waiting") return <Waiting {...(props.what ? { what: props.what } : {})} />;
  if (asked.state === "failed") return <Failed error={asked.error} again={asked.again} />;
  return (
    <div class={asked.stale ? "answered stale" : "answered"} aria-busy={asked.stale}>
      {props.children(asked.value)}
    </div>
  );
}

/** Delay in ms before the loading state is shown. */
const SLOW_MS = 400;
const VERY_SLOW_MS = 3_000;

/** What is being read, for as long as it takes. */
export function Waiting(props: { what?: string }) {
  const [slow, set] = useState<"no" | "yes" | "very">("no");
  useEffect(() => {
    const first = setTimeout(() => set("yes"), SLOW_MS);
    const second = setTimeout(() => set("very"), VERY_SLOW_MS);
    return () => {
      clearTimeout(first);
      clearTimeout(second);
    };
  }, []);
  return (
    <div class="waiting" role="status" data-slow={slow}>
      {slow !== "no" && <WaitingText otherwise={`Reading ${props.what ?? "the trace"} …`} />}
      {slow === "very" && <p>A large trace takes some seconds the first time, and none after.</p>}
    </div>
  );
}

function Failed(props: { error: string; again: (() => void) | undefined }) {
  return (
    <div class="failed">
      <Empty title={props.again ? "This cannot be shown" : "Not in this report"} text={plain(props.error)}>
        {props.again && <button type="button" onClick={props.again}>Try again</button>}
      </Empty>
    </div>
  );
}

/** Shown instead of an empty table or picture: what is missing, and how to get it. */
export function Empty(props: { title: string; text?: string; children?: ComponentChildren }) {
  return (
    <div class="empty" role="note">
      <h2>{props.title}</h2>
      {props.text && <p>{props.text}</p>}
      {props.children}
    </div>
  );
}
