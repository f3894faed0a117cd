// Shows a diff: removed lines with a minus, added lines with a plus.

import "./diff.css";
import { rows as rowsOf } from "./diff.ts";
import type { Change } from "./diff.ts";
import { tokens } from "./python.ts";
import { Coloured } from "./source.tsx";

const NAMES = { " ": "same", "-": "removed", "+": "added", "…": "apart" } as const;
const SAID = { "-": "removed", "+": "added" } as const;

export function Diff(props: { lines: readonly string[]; changes: readonly Change[]; label: string }) {
  const rows = rowsOf(props.lines, props.changes);
  const digits = Math.max(...rows.map((row) => String(row.number ?? "").length));
  return (
    <pre class="source diff" tabIndex={0} aria-label={props.label} style={{ "--digits": digits }}>
      {rows.map((row, at) => (
        <code key={at} class={NAMES[row.sign]} data-line={row.number ?? ""} data-sign={row.sign}>
          {(row.sign === "-" || row.sign === "+") && <span class="visually-hidden">{SAID[row.sign]}: </span>}
          <Coloured tokens={tokens([row.text])[0] ?? []} />
          {"\n"}
        </code>
      ))}
    </pre>
  );
}
