// The checks of the trace's health.

import type { Data, TraceInfo } from "../../data/api.ts";
import { QueryResult, useQuery } from "../../parts/data/asking.tsx";
import { HEALTH_MARKS } from "../../parts/text/health-marks.ts";
import { TraceText } from "../../parts/text/trace-text.tsx";
import { textAt, loadTable } from "../../parts/data/full-table.ts";
import type { FullTable } from "../../parts/data/full-table.ts";
import { link } from "../../route.ts";

export function HealthChecks(props: { data: Data; trace: TraceInfo }) {
  const { data, trace } = props;
  const asked = useQuery(() => loadTable(data, trace.id, "health"), trace.id);
  return <QueryResult asked={asked} what="the checks">{(table) => <Checks table={table} />}</QueryResult>;
}

function Checks(props: { table: FullTable }) {
  const { table } = props;
  const rows = Array.from({ length: table.rows }, (_, row) => row);
  return (
    <ul class="health-checks">
      {rows.map((row) => {
        const verdict = textAt(table, "verdict", row) ?? "";
        const affects = textAt(table, "affects", row);
        return (
          <li key={row} data-verdict={verdict}>
            <span class="answer-mark" title={verdict} aria-label={verdict} role="img">{HEALTH_MARKS[verdict] ?? "?"}</span>
            <span>
              <a href={link("health")}>{textAt(table, "check", row)}</a>{" "}
              <TraceText text={textAt(table, "text", row) ?? ""} />
              {affects !== null && <span class="muted"> · affects {affects}</span>}
            </span>
          </li>
        );
      })}
    </ul>
  );
}
