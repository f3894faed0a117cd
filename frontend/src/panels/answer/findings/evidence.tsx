// The numbers behind a finding, each with the slices that it was measured on.

import type { Finding, FindingTexts } from "../../../data/advice.ts";
import { plain } from "../../../parts/text/plain.ts";
import { TraceText } from "../../../parts/text/trace-text.tsx";
import { link } from "../../../route.ts";
import { text } from "../../../units.ts";

/** Number of slices that are linked; the others are counted. */
const SHOWN = 3;

export function EvidenceTable(props: { finding: Finding; said: FindingTexts }) {
  const { finding, said } = props;
  const { evidence, count_per_step: count } = finding;
  const hasSlices = evidence.some((row) => row.events.length > 0);
  if (evidence.length === 0 && count === null) return null;
  return (
    <table class="evidence">
      <thead class="visually-hidden">
        <tr>
          <th scope="col">Measured</th>
          <th scope="col">Value</th>
          {hasSlices && <th scope="col">Slices</th>}
        </tr>
      </thead>
      <tbody>
        {evidence.map((row, at) => (
          <tr key={at}>
            <td title={plain(row.metric)}><TraceText text={said.evidence[at]?.metric ?? row.metric} /></td>
            <td class="number">{said.evidence[at]?.value}</td>
            {hasSlices && <td class="evidence-slices"><Slices ids={row.events} /></td>}
          </tr>
        ))}
        {count !== null && (
          <tr>
            <td>times a step</td>
            <td class="number">{Number.isInteger(count) ? text(count, "count") : count.toFixed(1)}</td>
            {hasSlices && <td />}
          </tr>
        )}
      </tbody>
    </table>
  );
}

function Slices(props: { ids: readonly number[] }) {
  const { ids } = props;
  return (
    <>
      {ids.slice(0, SHOWN).map((id) => (
        <a key={id} href={link("timeline", { slice: String(id) })} title={`Show slice ${id} in the timeline`}>#{id}</a>
      ))}
      {ids.length > SHOWN && <span class="muted">+{ids.length - SHOWN}</span>}
    </>
  );
}
