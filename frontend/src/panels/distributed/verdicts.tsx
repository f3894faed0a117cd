// The rank that the others wait for, and why; or why that is unclear.

import type { Job } from "../../data/api.ts";
import { plain } from "../../parts/text/plain.ts";
import { number, textAt } from "../../parts/data/whole.ts";
import type { WholeTable } from "../../parts/data/whole.ts";
import { link } from "../../route.ts";
import { countText, timeText } from "../../units.ts";
import type { JobProps } from "./index.tsx";
import { traceOf } from "./places.ts";

const MORE: Readonly<Record<string, string>> = {
  data: "waiting for data", compute: "in kernels", clocks: "in kernels", gc: "in garbage collection", host: "on the host alone",
};

export function Verdicts(props: JobProps & { table: WholeTable }) {
  const { table, job } = props;
  const rows = [...Array(table.rows).keys()];
  const named = rows.filter((row) => table.columns["straggler"]?.[row] === true);
  return (
    <section aria-label="Who makes the others wait">
      <h2>Who makes the others wait</h2>
      {named.map((row) => <Card key={row} job={job} table={table} row={row} />)}
      {named.length === 0 && <None table={table} rows={rows} />}
    </section>
  );
}

function Card(props: { job: Job; table: WholeTable; row: number }) {
  const { table, row } = props;
  const label = plain(textAt(table, "label", row) ?? "");
  const verdict = textAt(table, "verdict", row) ?? "";
  const why = verdict.split(": ").slice(1).join(": ") || verdict.split("; ").slice(1).join("; ");
  const cause = textAt(table, "cause", row);
  const time = (name: string) => timeText(number(table, name, row) ?? 0);
  const count = (name: string) => countText(number(table, name, row) ?? 0);
  const which = plain(textAt(table, "late_steps", row) ?? "");
  return (
    <article class="job-verdict">
      <h3>
        <span class="job-mark" aria-hidden="true">!</span>
        {label} comes {time("late")} late a step: {plain(why)}
      </h3>
      <p class="job-place"><Place {...props} /></p>
      <dl>
        <div><dt>the others wait</dt><dd>{number(table, "delayed_others", row) === null ? "-" : `${time("delayed_others")} a step`}</dd></div>
        {cause !== null && number(table, "excess", row) !== null && (
          <div><dt>more {MORE[cause] ?? cause}</dt><dd>{time("excess")} a step</dd></div>
        )}
        <div title={which ? `steps ${which}` : undefined}>
          <dt>came last to</dt><dd>{count("last")} of {count("collectives")} collectives, in {count("steps_last")} of {count("steps")} steps</dd>
        </div>
      </dl>
      <Ways {...props} />
    </article>
  );
}

/** The line and the kernel or operator in which the rank spends more than others. */
function Place(props: { job: Job; table: WholeTable; row: number }) {
  const { job, table, row } = props;
  const [file, line] = [textAt(table, "file", row), number(table, "line", row)];
  const trace = traceOf(job, textAt(table, "label", row) ?? "");
  const work = textAt(table, "work", row);
  return (
    <>
      {file !== null && (
        <a class="mono" title={plain(file)} href={link("lines", { ...trace, file, ...(line === null ? {} : { line: String(line) }) })}>
          {plain(file.split(/[/\\]/).at(-1) ?? file)}{line === null ? "" : `:${line}`}
        </a>
      )}
      {file !== null && textAt(table, "function", row) !== null && <span class="muted"> in {plain(textAt(table, "function", row) ?? "")}</span>}
      {work !== null && <span class="mono muted" title={plain(work)}>{file === null ? "" : " · "}{plain(work.slice(0, 90))}</span>}
      {file === null && work === null && <span class="muted">No source line is known: record with stacks to see it.</span>}
    </>
  );
}

function Ways(props: { job: Job; table: WholeTable; row: number }) {
  const { job, table, row } = props;
  const own = job.ranks.find(({ label }) => label === textAt(table, "label", row));
  const other = waiting(table, own?.label);
  const beside = job.ranks.find(({ label }) => label === other);
  const trace = own?.traces[0]?.trace;
  if (trace === undefined) return null;
  return (
    <p class="job-ways">
      <a href={link("timeline", { trace })}>Its timeline</a>
      {beside && <a href={link("timeline", { trace, with: String(beside.key) })}>Beside that of {plain(beside.label)}, which waits most</a>}
      <a href={link("answer", { trace })}>What to change there</a>
    </p>
  );
}

/** The rank that waits most, except the given one. */
function waiting(table: WholeTable, but: string | undefined): string | null {
  const rows = [...Array(table.rows).keys()].filter((row) => textAt(table, "label", row) !== but);
  rows.sort((one, other) => (number(table, "waited", other) ?? -1) - (number(table, "waited", one) ?? -1));
  return rows[0] === undefined ? null : textAt(table, "label", rows[0]);
}

/** The reasons why no rank is named, with the ranks concerned. */
function None(props: { table: WholeTable; rows: readonly number[] }) {
  const { table, rows } = props;
  const reasons = new Map<string, string[]>();
  for (const row of rows) {
    const reason = (textAt(table, "verdict", row) ?? "").replace(/^no claim: /, "");
    reasons.set(reason, [...(reasons.get(reason) ?? []), plain(textAt(table, "label", row) ?? "")]);
  }
  return (
    <div class="job-none">
      <p><b>No rank is named.</b> <span class="muted">No rank is late by more than its own variation.</span></p>
      <ul>
        {[...reasons].map(([reason, labels]) => (
          <li key={reason}>
            {plain(reason)} <span class="muted" title={labels.join(", ")}>{labels.length > 3 ? `${countText(labels.length)} ranks` : labels.join(", ")}</span>
          </li>
        ))}
      </ul>
    </div>
  );
}
