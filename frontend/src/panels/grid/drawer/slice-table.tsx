// The slices of a row, the longest first, each with its place in the timeline.

import { plain } from "../../../parts/text/plain.ts";
import type { FullTable } from "../../../parts/data/full-table.ts";
import { cell, number, textAt } from "../../../parts/data/full-table.ts";
import { instantText, timeText } from "../../../units.ts";
import { timelineLink } from "../cell.tsx";

/** Columns of slices that are shown if they tell them apart. */
const EXTRA = [["step", "Step"], ["thread", "Thread"], ["launch_delay", "Delay"]] as const;

export function SliceTable(props: { table: FullTable; names: boolean }) {
  const { table } = props;
  const rows = Array.from({ length: table.rows }, (_, row) => row);
  const extra = EXTRA.filter(([name]) => new Set(rows.map((row) => cell(table, name, row))).size > 1);
  return (
    <table class="drawer-slices">
      <thead>
        <tr>
          <th scope="col" class="number">Start</th>
          <th scope="col" class="number">Duration</th>
          {props.names && <th scope="col">Name</th>}
          {extra.map(([name, title]) => (
            <th key={name} scope="col" class={name === "thread" ? "" : "number"}>{title}</th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => <Slice key={row} table={table} row={row} names={props.names} extra={extra.map(([name]) => name)} />)}
      </tbody>
    </table>
  );
}

function Slice(props: { table: FullTable; row: number; names: boolean; extra: readonly string[] }) {
  const { table, row, names, extra } = props;
  const [start, duration] = [number(table, "start", row) ?? 0, number(table, "duration", row)];
  const name = plain((textAt(table, "name", row) ?? "").slice(0, 300));
  return (
    <tr>
      <td class="number">
        <a href={timelineLink(start, duration ?? 0, cell(table, "id", row))} title="Show in the timeline">{instantText(start)}</a>
      </td>
      <td class="number">{duration === null ? "–" : timeText(duration)}</td>
      {names && <td class="mono drawer-cut" title={name}>{name}</td>}
      {extra.map((column) => {
        const value = cell(table, column, row);
        const words = typeof value === "number" && column === "launch_delay" ? timeText(value) : plain(String(value ?? "–"));
        return <td key={column} class={column === "thread" ? "drawer-cut" : "number"} title={words}>{words}</td>;
      })}
    </tr>
  );
}
