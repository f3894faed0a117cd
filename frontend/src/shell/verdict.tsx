// One word in the header on whether the trace can be trusted.

import type { Data, TraceInfo } from "../data/api.ts";
import { useQuery } from "../parts/data/asking.tsx";
import { HEALTH_MARKS } from "../parts/text/health-marks.ts";
import { link } from "../route.ts";

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
  const asked = useQuery(() => verdictOf(data, trace.id), trace.id);
  if (asked.state === "waiting" || (asked.state === "here" && asked.stale)) return null;
  const { word, why, notes } =
    asked.state === "failed" ? { word: "unreadable", why: asked.error, notes: 0 } : asked.value;
  return (
    <a class="verdict" data-verdict={word} href={link("health")} title={why}>
      <span class="verdict-mark" aria-hidden="true">{HEALTH_MARKS[word] ?? "✕"}</span>
      <span class="visually-hidden">Health of the trace: </span>
      {word}
      {notes > 1 && <span class="muted"> · {notes} notes</span>}
    </a>
  );
}
