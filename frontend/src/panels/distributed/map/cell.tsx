// The chosen step of a rank: what it was spent on, against the median of all ranks in that step.

import { Stack } from "../../../parts/charts/stack.tsx";
import { QueryResult, useQuery } from "../../../parts/data/asking.tsx";
import { loadTable, number, textAt } from "../../../parts/data/full-table.ts";
import type { FullTable } from "../../../parts/data/full-table.ts";
import { plain } from "../../../parts/text/plain.ts";
import { change } from "../../../route.ts";
import { timeText } from "../../../units.ts";
import type { JobProps } from "../index.tsx";
import { traceOf } from "../rank-traces.ts";
import { median } from "./heat.ts";
import { againstText } from "./tip.tsx";

/** The parts of a step, which add up to it, with their colours. */
const PARTS = [
  ["kernel", "kernels", "kernel"],
  ["communication", "communication alone", "collective"],
  ["data_loading", "waiting for data", "loading"],
  ["cpu", "host, device idle", "operator"],
  ["runtime", "calls, device idle", "runtime"],
  ["memcpy", "copies", "copy"],
  ["memset", "fills", "memory"],
  ["other", "nothing known", "other"],
] as const;
const FIGURES = [["time", "step"], ["own_work", "own work"], ["waited", "waits for others"], ["late", "late"]] as const;

interface CellProps extends JobProps {
  label: string;
  step: number;
  open: (label: string, step: number) => Promise<void>;
}

export function CellCard(props: CellProps) {
  const { data, trace, step } = props;
  const ask = () => loadTable(data, trace.id, "ranks", { by: "step" }, { where: [{ column: "step", op: "is", value: String(step) }] });
  const asked = useQuery(ask, `${trace.id} ${step}`);
  return (
    <article class="job-cell" aria-label="The chosen step">
      <QueryResult asked={asked}>{(table) => <Told {...props} table={table} />}</QueryResult>
    </article>
  );
}

function Told(props: CellProps & { table: FullTable }) {
  const { table, label, step, job, open } = props;
  const row = (table.columns["label"] ?? []).indexOf(label);
  const stage = row < 0 ? null : number(table, "stage", row);
  const host = row < 0 ? null : textAt(table, "host", row);
  const where = [stage === null ? null : `stage ${stage}`, host === null ? null : plain(host)].filter((word) => word !== null);
  const parts = row < 0 ? [] : PARTS.flatMap(([column, title, colour]) => {
    const size = number(table, column, row) ?? 0;
    return size <= 0 ? [] : [{ label: title, colour, size, text: `${timeText(size)} ${medianText(table, column, size)}` }];
  });
  return (
    <>
      <div class="job-head">
        <h3>{plain(label)}, step {step} {where.length > 0 && <span class="muted">{where.join(" · ")}</span>}</h3>
        <button type="button" class="quiet" aria-label="Close the chosen step" onClick={() => change({ cell: undefined })}>×</button>
      </div>
      {row < 0 ? <p class="muted">This rank did not record that step.</p> : (
        <>
          <dl>
            {FIGURES.map(([column, title]) => {
              const value = number(table, column, row);
              return (
                <div key={column}>
                  <dt>{title}</dt>
                  <dd>{value === null ? "unknown" : timeText(value)} <span class="muted">{value === null ? "" : medianText(table, column, value)}</span></dd>
                </div>
              );
            })}
          </dl>
          <Stack parts={parts} label={`${plain(label)}, step ${step}`} />
        </>
      )}
      <p class="job-ways">
        {traceOf(job, label).trace !== undefined && row >= 0 && (
          <button type="button" onClick={() => void open(label, step)}>Its timeline at this step</button>
        )}
        <span class="muted">In brackets: against the median of the ranks in this step</span>
      </p>
    </>
  );
}

function medianText(table: FullTable, column: string, value: number): string {
  const values = (table.columns[column] ?? []).filter((one) => typeof one === "number");
  const middle = median(values);
  return middle === null || values.length < 2 ? "" : `(${againstText(value, middle).replace(/ \(.*/, "")})`;
}
