// What limits the numbers, check by check.

import type { Data, TraceInfo } from "../../api.ts";
import { Answered, useAsked } from "../../parts/asking.tsx";
import { Said } from "../../parts/said.tsx";
import { textAt, whole } from "../../parts/whole.ts";
import type { Whole } from "../../parts/whole.ts";
import { link } from "../../route.ts";

const MARKS: Readonly<Record<string, string>> = { good: "✓", degraded: "!", unusable: "✕" };

export function Trust(props: { data: Data; trace: TraceInfo }) {
  const { data, trace } = props;
  const asked = useAsked(() => whole(data, trace.id, "health"), trace.id);
  return <Answered asked={asked} what="the checks">{(table) => <Checks table={table} />}</Answered>;
}

function Checks(props: { table: Whole }) {
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
              <Said text={textAt(table, "text", row) ?? ""} />
              {affects !== null && <span class="muted"> · affects {affects}</span>}
            </span>
          </li>
        );
      })}
    </ul>
  );
}
