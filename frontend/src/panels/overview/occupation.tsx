// The time of each device as one bar: computation, communication, copies and idle.

import type { Data, TraceInfo } from "../../data/api.ts";
import { QueryResult, useQuery } from "../../parts/data/asking.tsx";
import { Stack } from "../../parts/charts/stack.tsx";
import { number, loadTable } from "../../parts/data/full-table.ts";
import type { FullTable } from "../../parts/data/full-table.ts";
import { link } from "../../route.ts";
import { text } from "../../units.ts";

const PARTS = [
  ["compute", "compute", "kernel"],
  ["exposed_communication", "exposed communication", "collective"],
  ["exposed_copies", "exposed copies", "copy"],
  ["idle", "idle", "idle"],
] as const;

export function Occupation(props: { data: Data; trace: TraceInfo }) {
  const { data, trace } = props;
  const asked = useQuery(() => loadTable(data, trace.id, "overlap"), trace.id);
  return <QueryResult asked={asked} what="what devices did">{(table) => <Devices table={table} />}</QueryResult>;
}

function Devices(props: { table: FullTable }) {
  const { table } = props;
  if (table.rows === 0) return <p class="muted">Nothing ran.</p>;
  return <>{Array.from({ length: table.rows }, (_, row) => <Device key={row} table={table} row={row} />)}</>;
}

function Device(props: { table: FullTable; row: number }) {
  const { table, row } = props;
  const device = number(table, "device", row);
  const window = number(table, "window", row) ?? 0;
  const hidden = number(table, "hidden_share", row);
  const name = device === null ? "host" : `device ${device}`;
  const parts = PARTS.flatMap(([column, label, colour]) => {
    const size = number(table, column, row) ?? 0;
    const share = window > 0 ? ` (${text(size / window, "ratio")})` : "";
    const href = column === "idle" && device !== null ? link("idle") : undefined;
    return size > 0 ? [{ label, colour, size, text: `${text(size, "ns")}${share}`, href }] : [];
  });
  return (
    <div class="occupation">
      <p>
        <a href={link("overlap")}>{name}</a>{" "}
        <span class="muted">
          of {text(window, "ns")}
          {hidden !== null && `; ${text(hidden, "ratio")} of the communication is hidden`}
        </span>
      </p>
      <Stack parts={parts} label={name} height={14} />
    </div>
  );
}
