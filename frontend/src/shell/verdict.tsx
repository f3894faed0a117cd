// Whether the trace can be trusted, as one word in the header; the health panel says why.

import type { Data, TraceInfo } from "../api.ts";
import { useAsked } from "../parts/asking.tsx";
import { link } from "../route.ts";

const MARKS: Readonly<Record<string, string>> = { good: "✓", degraded: "!", unusable: "✕" };

interface Verdict {
  word: string;
  why: string;
  notes: number;
}

async function verdictOf(data: Data, trace: string): Promise<Verdict> {
  const { verdict, text, notes } = await data.health(trace);
  return { word: verdict, why: notes[0] ?? text, notes: notes.length };
}

export function VerdictWord(props: { data: Data; trace: TraceInfo }) {
  const { data, trace } = props;
  const asked = useAsked(() => verdictOf(data, trace.id), trace.id);
  if (asked.state === "waiting" || (asked.state === "here" && asked.stale)) return null;
  const { word, why, notes } =
    asked.state === "failed" ? { word: "unreadable", why: asked.error, notes: 0 } : asked.value;
  return (
    <a class="verdict" data-verdict={word} href={link("health")} title={why}>
      <span class="verdict-mark" aria-hidden="true">{MARKS[word] ?? "✕"}</span>
      <span class="visually-hidden">Health of the trace: </span>
      {word}
      {notes > 1 && <span class="muted"> · {notes} notes</span>}
    </a>
  );
}
