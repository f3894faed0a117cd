// Asking for data: while it comes, when it came, when it failed. No panel is ever blank.

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { NotCarried } from "../api.ts";
import { plain } from "./plain.ts";

export type Asked<T> =
  | { state: "waiting" }
  | { state: "here"; value: T; stale: boolean }
  | { state: "failed"; error: string; again?: () => void };

/**
 * The answer to a question that is asked again whenever `key` changes. Until the new answer is here
 * the last one stays, marked as stale.
 */
export function useAsked<T>(ask: () => Promise<T>, key: string): Asked<T> {
  const [asked, set] = useState<{ key: string; answer: Asked<T> }>({
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

/** Asking again, where that may help. */
function repeated(error: unknown, again: () => void): { again?: () => void } {
  return error instanceof NotCarried ? {} : { again };
}

function sentence(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Draws an answer, or in its place what is going on. `what` says what is being read. */
export function Answered<T>(props: {
  asked: Asked<T>;
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

/** An answer that comes at once needs no word; one that does not is told about by and by. */
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
      {slow !== "no" && <p>Reading {props.what ?? "the trace"} …</p>}
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

/** In place of a table or picture without content: what is missing, and how to get it. */
export function Empty(props: { title: string; text?: string; children?: ComponentChildren }) {
  return (
    <div class="empty" role="note">
      <h3>{props.title}</h3>
      {props.text && <p>{props.text}</p>}
      {props.children}
    </div>
  );
}
