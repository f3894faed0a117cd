// The numbers behind a finding, each as a way to the slices that it was measured on.

import type { Finding, FindingTexts } from "../../../data/advice.ts";
import { NumberLink } from "../../../parts/numbers/number-link.tsx";
import { plain } from "../../../parts/text/plain.ts";
import { TraceText } from "../../../parts/text/trace-text.tsx";
import { text } from "../../../units.ts";

export function EvidenceTable(props: { finding: Finding; said: FindingTexts }) {
  const { finding, said } = props;
  const { evidence, count_per_step: count } = finding;
  const { slices } = said;
  const hasSlices = slices.count !== null || slices.evidence.some((to) => to !== null);
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
            <td class="number"><NumberLink to={slices.evidence[at]}>{said.evidence[at]?.value}</NumberLink></td>
            {hasSlices && <td class="evidence-slices muted">{slices.evidence[at]?.text}</td>}
          </tr>
        ))}
        {count !== null && (
          <tr>
            <td>times a step</td>
            <td class="number"><NumberLink to={slices.count}>{Number.isInteger(count) ? text(count, "count") : count.toFixed(1)}</NumberLink></td>
            {hasSlices && <td class="evidence-slices muted">{slices.count?.text}</td>}
          </tr>
        )}
      </tbody>
    </table>
  );
}
