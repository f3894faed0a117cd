// The state of the job: number of ranks, clock alignment, and problems such as missing ranks.

import type { Job } from "../../data/api.ts";
import { TraceText } from "../../parts/text/trace-text.tsx";
import { countText } from "../../units.ts";

/** Files and notes that are listed at first; a button shows the others. */
const MOST = 4;

export function JobState(props: { job: Job }) {
  const { job } = props;
  const notes = [
    ...job.notes.map((note) => ({ key: note, text: note })),
    ...job.refused.map(({ name, why }) => ({ key: name, text: `left out: ${why}` })),
  ];
  return (
    <>
      <p class="job-state">{job.facts.map((fact) => <span key={fact}>{fact}</span>)}</p>
      {notes.length > 0 && <Notes notes={notes.slice(0, MOST)} />}
      {notes.length > MOST && (
        <details class="job-more">
          <summary>and {countText(notes.length - MOST)} more</summary>
          <Notes notes={notes.slice(MOST)} />
        </details>
      )}
      {job.single_rank_note !== null && <p class="job-single-rank">{job.single_rank_note}</p>}
    </>
  );
}

function Notes(props: { notes: readonly { key: string; text: string }[] }) {
  return (
    <ul class="job-notes" role="note">
      {props.notes.map(({ key, text }) => <li key={key}><TraceText text={text} /></li>)}
    </ul>
  );
}
