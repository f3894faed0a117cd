// What a mean step of the job is spent on: the first line, as in the terminal.

import type { JobAccount } from "../../data/account.ts";
import { TraceText } from "../../parts/text/trace-text.tsx";

export function JobLead(props: { account: JobAccount }) {
  const { account } = props;
  return (
    <section class="job-lead" aria-label={account.step_title}>
      <p class="job-lead-step">
        <span class="muted">{account.step_title}</span>
        <b>{account.step}</b>
      </p>
      <div>
        <p><TraceText text={account.spent} /></p>
        {account.late !== null && <p class="job-lead-late"><TraceText text={account.late.text} /></p>}
      </div>
    </section>
  );
}
