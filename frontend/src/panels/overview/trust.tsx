// The checks of the trace's health.

import type { Data, TraceInfo } from "../../data/api.ts";
import { QueryResult, useQuery } from "../../parts/data/asking.tsx";
import { TraceSentence } from "../../parts/text/said.tsx";
import { textAt, loadTable } from "../../parts/data/whole.ts";
import type { WholeTable } from "../../parts/data/whole.ts";
import { link } from "../../route.ts";

const MARKS: Readonly<Record<string, string>> = { good: "✓", degraded: "!", unusable: "✕" };

export function Trust(props: { data: Data; trace: TraceInfo }) {
  const { data, trace } = props;
  const asked = useQuery(() => loadTable(data, trace.id, "health"), trace.id);
  return <QueryResult asked={asked} what="the checks">{(table) => <Checks table={table} />}</QueryResult>;
}

function Checks(props: { table: WholeTable }) {
  const { table } = props;
  const rows = Array.from({ length: table.rows }, (_, row) => row);
  return (
    <ul class="trust">
      {rows.map((row) => {
        const verdict = textAt(table, "verdict", row) ?? "";
        const affects = textAt(table, "affects", row);
        return (
          <li key={row} data-verdict={verdict}>
            <span class="answer-mark" title={verdict} aria-label={verdict} role="img">{MARKS[verdict] ?? "?"}</span>
            <span>
              <a href={link("health")}>{textAt(table, "check", row)}</a>{" "}
              <TraceSentence text={textAt(table, "text", row) ?? ""} />
              {affects !== null && <span class="muted"> · affects {affects}</span>}
            </span>
          </li>
        );
      })}
    </ul>
  );
}
