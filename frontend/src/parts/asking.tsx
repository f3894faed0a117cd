// Asking for data: while it comes, when it came, when it failed. No panel is ever blank.

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";

export type Asked<T> =
  | { state: "waiting" }
  | { state: "here"; value: T; stale: boolean }
  | { state: "failed"; error: string };

/**
 * The answer to a question that is asked again whenever `key` changes. Until the new answer is here
 * the last one stays, marked as stale.
 */
export function useAsked<T>(ask: () => Promise<T>, key: string): Asked<T> {
  const [asked, set] = useState<{ key: string; answer: Asked<T> }>({
    key,
    answer: { state: "waiting" },
  });
  useEffect(() => {
    let wanted = true;
    ask().then(
      (value) => wanted && set({ key, answer: { state: "here", value, stale: false } }),
      (error: unknown) =>
        wanted && set({ key, answer: { state: "failed", error: sentence(error) } }),
    );
    return () => {
      wanted = false;
    };
  }, [key]);
  const { answer } = asked;
  if (asked.key !== key && answer.state === "here") return { ...answer, stale: true };
  if (asked.key !== key) return { state: "waiting" };
  return answer;
}

function sentence(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Draws an answer, or in its place what is going on. */
export function Answered<T>(props: {
  asked: Asked<T>;
  children: (value: T) => ComponentChildren;
}) {
  const { asked } = props;
  if (asked.state === "waiting") return <p class="waiting" role="status">reading the trace …</p>;
  if (asked.state === "failed") return <Empty title="This cannot be shown" text={asked.error} />;
  return (
    <div class={asked.stale ? "answered stale" : "answered"} aria-busy={asked.stale}>
      {props.children(asked.value)}
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
