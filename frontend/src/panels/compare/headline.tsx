// The step before and after, whether the difference is one, and in what the recordings differ besides.

import type { Whole } from "../../parts/whole.ts";
import { pieces } from "../../parts/plain.ts";
import { stepWords } from "./wording.ts";

export function Headline(props: { steps: Whole; notes: readonly string[] }) {
  const { steps, notes } = props;
  const rows = Array.from({ length: steps.rows }, (_, row) => row);
  return (
    <>
      {steps.rows === 0 && (
        <p class="compare-none muted">
          Steps cannot be compared, as a recording has none: record with a schedule and{" "}
          <code>prof.step()</code>, or with <code>selftime run</code>.
        </p>
      )}
      {steps.rows > 0 && <div class="compare-steps">{rows.map((row) => <Step key={row} steps={steps} row={row} />)}</div>}
      {notes.length > 0 && (
        <section class="compare-notes" aria-label="Not alike">
          <h2>Not alike</h2>
          <ul>
            {notes.map((note) => (
              <li key={note}>
                {pieces(note).map((piece, at) => (piece.isName ? <code key={at}>{piece.text}</code> : piece.text))}
              </li>
            ))}
          </ul>
        </section>
      )}
    </>
  );
}

const SIGNS = { slower: "▲ ", faster: "▼ " };

function Step(props: { steps: Whole; row: number }) {
  const { title, before, after, verdict, said, surely } = stepWords(props.steps, props.row);
  return (
    <section class="compare-step" aria-label={title}>
      <h2>{title}</h2>
      <p class="compare-times">
        <span>{before}</span> <span class="muted" aria-label="to">→</span> <strong>{after}</strong>
      </p>
      <p class={verdict === null ? "" : `compare-${verdict}`}>
        {verdict !== null && <span aria-hidden="true">{SIGNS[verdict]}</span>}{said}
      </p>
      <p class="muted">{surely}</p>
    </section>
  );
}
