// The step before and after, the verdict, and other differences between the recordings.

import type { Compared, StepText } from "../../data/api.ts";
import { TraceText } from "../../parts/text/trace-text.tsx";

export function Headline(props: { said: Compared["said"]; notes: readonly string[] }) {
  const { said: { run, steps, no_steps: none }, notes } = props;
  return (
    <>
      {run !== null && <p><TraceText text={run} /></p>}
      {none !== null && <p class="compare-none muted"><TraceText text={none} /></p>}
      {steps.length > 0 && <div class="compare-steps">{steps.map((step) => <Step key={step.title} {...step} />)}</div>}
      {notes.length > 0 && (
        <section class="compare-notes" aria-label="Differences between the recordings">
          <h2>Differences between the recordings</h2>
          <ul>
            {notes.map((note) => (
              <li key={note}><TraceText text={note} /></li>
            ))}
          </ul>
        </section>
      )}
    </>
  );
}

const SIGNS = { slower: "▲ ", faster: "▼ " };

function Step(props: StepText) {
  const { title, before, after, verdict, difference_text: difference, interval_text: interval } = props;
  return (
    <section class="compare-step" aria-label={title}>
      <h2>{title}</h2>
      <p class="compare-times">
        <span>{before}</span> <span class="muted" aria-label="to">→</span> <strong>{after}</strong>
      </p>
      <p class={verdict === null ? "" : `compare-${verdict}`}>
        {verdict !== null && <span aria-hidden="true">{SIGNS[verdict]}</span>}{difference}
      </p>
      <p class="muted">{interval}</p>
    </section>
  );
}
