// The rank that the others wait for, and why; or why that is unclear.

import type { Job } from "../../data/api.ts";
import { labelOfValue, labelsOf } from "../../parts/data/labels.ts";
import type { Labels } from "../../parts/data/labels.ts";
import { plain } from "../../parts/text/plain.ts";
import { number, textAt } from "../../parts/data/full-table.ts";
import type { FullTable } from "../../parts/data/full-table.ts";
import { link } from "../../route.ts";
import { countText, timeText } from "../../units.ts";
import type { JobProps } from "./index.tsx";
import { traceOf } from "./rank-traces.ts";
import { placeText } from "../../parts/text/place.ts";

export function Verdicts(props: JobProps & { table: FullTable }) {
  const { table, job, views } = props;
  const labels = labelsOf(views.get("stragglers"), "cause");
  const rows = [...Array(table.rows).keys()];
  const named = rows.filter((row) => table.columns["straggler"]?.[row] === true);
  return (
    <section aria-label="Who makes the others wait">
      <h2>Who makes the others wait</h2>
      {named.map((row) => <Card key={row} job={job} table={table} row={row} labels={labels} />)}
      {named.length === 0 && <None table={table} rows={rows} />}
    </section>
  );
}

function Card(props: { job: Job; table: FullTable; row: number; labels: Labels }) {
  const { table, row, labels } = props;
  const label = plain(textAt(table, "label", row) ?? "");
  const cause = textAt(table, "cause", row);
  const time = (name: string) => timeText(number(table, name, row) ?? 0);
  const count = (name: string) => countText(number(table, name, row) ?? 0);
  const which = plain(textAt(table, "late_steps", row) ?? "");
  return (
    <article class="job-verdict">
      <h3>
        <span class="job-mark" aria-hidden="true">!</span>
        {label} · {plain(textAt(table, "verdict", row) ?? "")}
      </h3>
      <p class="job-place"><Place {...props} /></p>
      <dl>
        <div><dt>it comes late by</dt><dd>{time("late")} a step</dd></div>
        <div><dt>the others wait</dt><dd>{number(table, "delayed_others", row) === null ? "-" : `${time("delayed_others")} a step`}</dd></div>
        {cause !== null && number(table, "excess", row) !== null && (
          <div><dt>more {labelOfValue(labels, cause).text}</dt><dd>{time("excess")} a step</dd></div>
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
function Place(props: { job: Job; table: FullTable; row: number }) {
  const { job, table, row } = props;
  const [file, line] = [textAt(table, "file", row), number(table, "line", row)];
  const trace = traceOf(job, textAt(table, "label", row) ?? "");
  const work = textAt(table, "work", row);
  return (
    <>
      {file !== null && (
        <a class="mono" title={plain(file)} href={link("lines", { ...trace, file, ...(line === null ? {} : { line: String(line) }) })}>
          {plain(placeText(file.split(/[/\\]/).at(-1) ?? file, line))}
        </a>
      )}
      {file !== null && textAt(table, "function", row) !== null && <span class="muted"> in {plain(textAt(table, "function", row) ?? "")}</span>}
      {work !== null && <span class="mono muted" title={plain(work)}>{file === null ? "" : " · "}{plain(work.slice(0, 90))}</span>}
      {file === null && work === null && <span class="muted">The source line is unknown: record with stacks to see it.</span>}
    </>
  );
}

function Ways(props: { job: Job; table: FullTable; row: number }) {
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
function waiting(table: FullTable, but: string | undefined): string | null {
  const rows = [...Array(table.rows).keys()].filter((row) => textAt(table, "label", row) !== but);
  rows.sort((one, other) => (number(table, "waited", other) ?? -1) - (number(table, "waited", one) ?? -1));
  return rows[0] === undefined ? null : textAt(table, "label", rows[0]);
}

/** The reasons why no rank is named, with the ranks concerned. */
function None(props: { table: FullTable; rows: readonly number[] }) {
  const { table, rows } = props;
  const reasons = new Map<string, string[]>();
  for (const row of rows) {
    const reason = textAt(table, "verdict", row) ?? "";
    reasons.set(reason, [...(reasons.get(reason) ?? []), plain(textAt(table, "label", row) ?? "")]);
  }
  return (
    <div class="job-none">
      <p><b>No rank is named as a straggler.</b></p>
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
