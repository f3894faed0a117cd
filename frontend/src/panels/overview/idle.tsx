// Idle time of devices, by cause.

import type { Data, TraceInfo, ViewSpec } from "../../data/api.ts";
import { QueryResult, useQuery } from "../../parts/data/asking.tsx";
import { MissingDataNote } from "../../parts/text/missing-data.tsx";
import { labelOfValue, labelsOf } from "../../parts/data/labels.ts";
import type { Labels } from "../../parts/data/labels.ts";
import { number, numbers, textAt, loadTable } from "../../parts/data/full-table.ts";
import type { FullTable } from "../../parts/data/full-table.ts";
import { link } from "../../route.ts";
import { text } from "../../units.ts";
import { Meter } from "../../parts/figures/devices.tsx";

export function IdleCauses(props: { data: Data; trace: TraceInfo; views: ReadonlyMap<string, ViewSpec> }) {
  const { data, trace } = props;
  const asked = useQuery(() => loadTable(data, trace.id, "idle", { by: "cause", counted: true }), trace.id);
  return <QueryResult asked={asked} what="the gaps">{(table) => <Causes table={table} labels={labelsOf(props.views.get("idle"), "cause")} />}</QueryResult>;
}

function Causes(props: { table: FullTable; labels: Labels }) {
  const { table, labels } = props;
  const rows = Array.from({ length: table.rows }, (_, row) => row);
  const most = Math.max(0, ...rows.map((row) => number(table, "duration", row) ?? 0));
  const devices = new Set(table.columns["device"] ?? []);
  if (table.lacks.length > 0) return <MissingDataNote lacks={table.lacks} />;
  if (rows.length === 0) return <p class="muted">No device was idle in the counted steps.</p>;
  return (
    <>
      <table class="figures idle-causes">
        <thead>
          <tr>
            <th scope="col">Cause</th>
            <th aria-hidden="true" />
            {devices.size > 1 && <th scope="col" class="number">Device</th>}
            <th scope="col" class="number">Idle</th>
            <th scope="col" class="number">Share</th>
            <th scope="col" class="number">Gaps</th>
            <th scope="col" class="number">Longest</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <Cause key={row} table={table} row={row} labels={labels} most={most} hasDevices={devices.size > 1} />
          ))}
        </tbody>
        {rows.length > 1 && (
          <tfoot>
            <tr data-whole="true">
              <th scope="row">all causes</th>
              <td />
              {devices.size > 1 && <td />}
              <td class="number">{text(numbers(table, "duration").reduce((sum, time) => sum + time, 0), "ns")}</td>
              <td class="number">{devices.size > 1 ? "" : text(numbers(table, "share").reduce((sum, share) => sum + share, 0), "ratio")}</td>
              <td class="number">{text(numbers(table, "count").reduce((sum, count) => sum + count, 0), "count")}</td>
              <td />
            </tr>
          </tfoot>
        )}
      </table>
      <p class="muted">
        Idle time of the counted steps; each gap has one cause. The time on the bars of devices is of all
        steps, and the table of gaps leaves out kernel gaps, which are too short to list.
      </p>
    </>
  );
}

function Cause(props: { table: FullTable; row: number; labels: Labels; most: number; hasDevices: boolean }) {
  const { table, row, labels, most, hasDevices } = props;
  const cause = textAt(table, "cause", row) ?? "";
  const label = labelOfValue(labels, cause);
  const duration = number(table, "duration", row) ?? 0;
  const start = number(table, "start", row);
  const longest = number(table, "longest", row);
  // Gaps below the threshold are in the sums alone: only these have a row for them.
  const by = cause === "kernel_gap" ? "cause" : "gap";
  const where = JSON.stringify([{ column: "cause", op: "is", value: cause }]);
  const gap = start === null || longest === null
    ? null
    : link("timeline", { from: String(start - longest), to: String(start + 2 * longest) });
  return (
    <tr>
      <th scope="row">
        <a href={link("idle", { by, counted: "true", where })} title={label.doc}>{label.text}</a>
      </th>
      <td class="number"><Meter share={duration / most} /></td>
      {hasDevices && <td class="number">{text(number(table, "device", row), "id")}</td>}
      <td class="number">{text(duration, "ns")}</td>
      <td class="number">{text(number(table, "share", row), "ratio")}</td>
      <td class="number">{text(number(table, "count", row), "count")}</td>
      <td class="number">
        {gap === null ? text(longest, "ns") : <a href={gap} title="Show it in the timeline">{text(longest, "ns")}</a>}
      </td>
    </tr>
  );
}
