// What-ifs of the job as switches: the step now, and with all that is switched, computed jointly.

import type { Data } from "../../../data/api.ts";
import { NotInReport } from "../../../data/api.ts";
import { QueryResult, useQuery } from "../../../parts/data/asking.tsx";
import { loadTable } from "../../../parts/data/full-table.ts";
import type { FullTable } from "../../../parts/data/full-table.ts";
import { plain } from "../../../parts/text/plain.ts";
import { change, link } from "../../../route.ts";
import { millisecondsText } from "../../../units.ts";
import type { JobProps } from "../index.tsx";
import { formatSwitched, parseSwitched, predictedAt, rowWithout, savingText, switchesOf, toggled } from "./choices.ts";
import type { Switch } from "./choices.ts";

const VIEW = "job_what_if";

/** Each change alone, or in a report all choices that it has room for. */
async function loadChoices(data: Data, trace: string): Promise<FullTable> {
  if (!data.inline) return loadTable(data, trace, VIEW);
  return loadTable(data, trace, VIEW, { every_choice: true }).catch((error: unknown) => {
    if (error instanceof NotInReport) return loadTable(data, trace, VIEW);
    throw error;
  });
}

export function WhatIfSwitches(props: JobProps) {
  const { data, trace } = props;
  const asked = useQuery(() => loadChoices(data, trace.id), trace.id);
  return (
    <section aria-label="What if">
      <h2>What if</h2>
      <QueryResult asked={asked} what="the job, computed anew">{(table) => <Switches {...props} table={table} />}</QueryResult>
    </section>
  );
}

function Switches(props: JobProps & { table: FullTable }) {
  const { data, trace, params, table } = props;
  const switches = switchesOf(table);
  const chosen = parseSwitched(params["without"], switches);
  const here = rowWithout(table, chosen);
  const isAsked = here === null && !data.inline;
  const ask = () => (isAsked ? loadTable(data, trace.id, VIEW, { without: formatSwitched(chosen) ?? "" }) : Promise.resolve(table));
  const asked = useQuery(ask, `${trace.id} ${isAsked ? chosen.join() : ""}`);
  if (switches.length === 0) {
    return <p class="muted">Nothing can be computed: at least two ranks need two steps in a row, and their collectives.</p>;
  }
  const cannot = (change: string) => data.inline && rowWithout(table, toggled(chosen, change, switches)) === null;
  const isLimited = switches.some((one) => cannot(one.change));
  return (
    <>
      <ul class="job-switches">
        {switches.map((one) => (
          <li key={one.change}>
            <Toggle
              of={one}
              on={chosen.includes(one.change)}
              off={cannot(one.change)}
              set={() => change({ without: formatSwitched(toggled(chosen, one.change, switches)) })}
            />
          </li>
        ))}
      </ul>
      {isLimited && <p class="muted">This report does not hold every choice; <code>selftime serve</code> computes the others.</p>}
      <QueryResult asked={asked}>{(found) => <Outcome table={found} switches={switches} chosen={chosen} />}</QueryResult>
    </>
  );
}

function Toggle(props: { of: Switch; on: boolean; off: boolean; set: () => void }) {
  const { of, on, off, set } = props;
  return (
    <label class="job-switch" title={of.doc} data-on={on} data-off={off}>
      <input type="checkbox" role="switch" checked={on} disabled={off} onChange={set} />
      <span>{plain(of.title)}</span>
      <span class="muted number">{savingText(of.alone)}</span>
    </label>
  );
}

function Outcome(props: { table: FullTable; switches: readonly Switch[]; chosen: readonly string[] }) {
  const { table, switches, chosen } = props;
  const row = rowWithout(table, chosen);
  const told = row === null ? null : predictedAt(table, row, switches, chosen);
  if (told === null) return <p class="muted">The job is being computed anew …</p>;
  const most = Math.max(told.before, told.most);
  const share = (time: number) => `${(100 * time) / most}%`;
  const isRange = told.most - told.least > 500;
  const after = isRange ? `${millisecondsText(told.least / 1e6)} to ${millisecondsText(told.most / 1e6)}` : millisecondsText(told.most / 1e6);
  return (
    <div class="job-outcome" role="group" aria-label="The step of the job">
      <span>now</span>
      <span class="job-outcome-bar"><i style={{ width: share(told.before), background: "var(--idle)" }} /></span>
      <b class="number">{millisecondsText(told.before / 1e6)}</b>
      {chosen.length > 0 && (
        <>
          <span>with this</span>
          <span class="job-outcome-bar">
            <i style={{ width: share(told.least), background: "var(--good)" }} />
            {isRange && <i class="job-outcome-range" style={{ width: share(told.most - told.least) }} />}
          </span>
          <b class="number">{after}</b>
        </>
      )}
      <p role="status">
        {chosen.length === 0 ? "Switch on what the job should be without; beside each is what it saves a step alone." : <>{told.text} {told.alone}</>}
        {" "}<a href={link("view", { name: VIEW })}>As a table</a>
      </p>
    </div>
  );
}
