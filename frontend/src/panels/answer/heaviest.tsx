// The section of the costliest lines, operators and kernels.

import "./heaviest.css";
import type { Data, TraceInfo } from "../../data/api.ts";
import { QueryResult, useQuery } from "../../parts/data/asking.tsx";
import { MissingDataNote } from "../../parts/text/missing-data.tsx";
import { link } from "../../route.ts";
import { text } from "../../units.ts";
import { heaviest } from "./heaviest.ts";
import type { Heaviest } from "./heaviest.ts";

export function HeaviestSection(props: { data: Data; trace: TraceInfo; hasDevice: boolean }) {
  const { data, trace, hasDevice } = props;
  const asked = useQuery(() => heaviest(data, trace.id, hasDevice), `${trace.id} ${hasDevice}`);
  return (
    <section class="answer-section">
      <h2>Where the time goes</h2>
      <QueryResult asked={asked} what="lines and operators">{(found) => <Lists found={found} />}</QueryResult>
    </section>
  );
}

function Lists(props: { found: readonly Heaviest[] }) {
  const shown = props.found.filter((one) => one.lacks.length === 0);
  const lacks = [...new Set(props.found.flatMap((one) => one.lacks))];
  return (
    <>
      <div class="heaviest">{shown.map((one) => <List key={one.title} {...one} />)}</div>
      <MissingDataNote lacks={lacks} />
    </>
  );
}

function List(props: Heaviest) {
  const { title, panel, entries, what } = props;
  const most = Math.max(0, ...entries.map((entry) => entry.time));
  return (
    <div class="heaviest-list">
      <h3>{title} <span class="muted">by {what}</span></h3>
      {entries.length === 0 && <p class="muted">No time was recorded.</p>}
      <ol>
        {entries.map((entry, at) => (
          <li key={at}>
            <a class="mono" href={entry.href} title={entry.title}>{entry.name}</a>
            <span class="heaviest-bar"><i style={{ width: `${(100 * entry.time) / most}%` }} /></span>
            <span class="number">{text(entry.time, "ns")}</span>
            <span class="number muted">{entry.share === null ? "" : text(entry.share, "ratio")}</span>
          </li>
        ))}
      </ol>
      {entries.length > 0 && <a href={link(panel)}>All {title.toLowerCase()}</a>}
    </div>
  );
}
