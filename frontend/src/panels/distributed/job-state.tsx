// The state of the job: number of ranks, clock alignment, and problems such as missing ranks.

import type { Job } from "../../data/api.ts";
import { TraceText } from "../../parts/text/trace-text.tsx";
import { plain } from "../../parts/text/plain.ts";
import { countText, timeText } from "../../units.ts";

/** Files and notes that are listed at first; a button shows the others. */
const MOST = 4;

export function JobState(props: { job: Job }) {
  const { job } = props;
  const odd = [
    ...job.notes.map((note) => ({ key: note, text: note })),
    ...job.refused.map(({ name, why }) => ({ key: name, text: `left out: ${why}` })),
  ];
  return (
    <>
      <p class="job-state">{facts(job).map((fact) => <span key={fact}>{fact}</span>)}</p>
      {odd.length > 0 && <Odd odd={odd.slice(0, MOST)} />}
      {odd.length > MOST && (
        <details class="job-more">
          <summary>and {countText(odd.length - MOST)} more</summary>
          <Odd odd={odd.slice(MOST)} />
        </details>
      )}
      {job.ranks.length === 1 && <One job={job} />}
    </>
  );
}

function facts(job: Job): string[] {
  const count = countText(job.ranks.length);
  const names = [...new Set(job.ranks.map(({ device }) => device).filter((name) => name !== null))];
  return [
    job.size === null ? `${count} ${job.ranks.length === 1 ? "rank" : "ranks"}` : `${count} of ${countText(job.size)} ranks`,
    ...(names.length === 1 ? [plain(names[0] ?? "")] : names.length > 1 ? [`${names.length} kinds of device`] : []),
    ...clocks(job),
    `${countText(job.groups.length)} process ${job.groups.length === 1 ? "group" : "groups"}`,
  ];
}

/** The remaining clock error: how far apart the ends of a collective are after alignment. */
function clocks(job: Job): string[] {
  if (job.ranks.length < 2) return [];
  if (job.residual === null) return ["clocks not aligned"];
  const lone = job.ranks.filter(({ residual }) => residual === null).length;
  const told = `clocks agree within ${timeText(Math.max(Math.ceil(job.residual), 1))}`;
  return [lone === 0 ? told : `${told}, but for ${countText(lone)} of the ranks`];
}

function Odd(props: { odd: readonly { key: string; text: string }[] }) {
  return (
    <ul class="job-notes" role="note">
      {props.odd.map(({ key, text }) => <li key={key}><TraceText text={text} /></li>)}
    </ul>
  );
}

function One(props: { job: Job }) {
  const { size } = props.job;
  const others = size !== null && size > 1 ? `the other ${countText(size - 1)}` : "the others";
  return (
    <p class="job-single-rank">
      This is the trace of one rank: it shows what was exchanged, and waiting and moving data as one.
      With the traces of {others} in the same folder it would tell who waits for whom, and why.
    </p>
  );
}
