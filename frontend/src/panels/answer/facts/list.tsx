// A short list of names with bar, time and share.

import { useQuery } from "../../../parts/data/asking.tsx";
import { TraceText } from "../../../parts/text/trace-text.tsx";
import { timeText, text } from "../../../units.ts";
import type { PanelProps } from "../../panel.ts";
import type { Asking, Entry } from "./lists.ts";
import { Fact } from "./fact.tsx";

export function ListFact(props: PanelProps & { of: Asking }) {
  const { data, trace, of } = props;
  const asked = useQuery(() => of.load(data, trace.id), `${trace.id} ${of.view} ${of.what}`);
  return (
    <Fact name={of.view} title={of.title} what={of.what} all={of.all} asked={asked}>
      {({ entries, lacks }) => (
        entries.length === 0
          ? <p class="muted">{lacks.length > 0 ? <>Not in this recording: <TraceText text={lacks.join("; ")} />.</> : "No time was recorded."}</p>
          : <Entries entries={entries} isCode />
      )}
    </Fact>
  );
}

/** Bars are shares of the largest entry. */
export function Entries(props: { entries: readonly Entry[]; isCode?: boolean }) {
  const { entries, isCode = false } = props;
  const most = Math.max(0, ...entries.map((entry) => entry.time));
  return (
    <ol class="fact-list">
      {entries.map((entry, at) => (
        <li key={at}>
          <a class={isCode ? "mono" : undefined} href={entry.href} title={entry.title}>{entry.name}</a>
          <span class="fact-bar" aria-hidden="true"><i style={{ width: `${(100 * entry.time) / most}%` }} /></span>
          <span class="number">{timeText(entry.time)}</span>
          <span class="number muted">{entry.share === null ? "" : text(entry.share, "ratio")}</span>
        </li>
      ))}
    </ol>
  );
}
