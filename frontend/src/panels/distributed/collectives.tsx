// Collectives: time that ranks wait for each other, transfer time and bandwidth.

import { QueryResult, useQuery } from "../../parts/data/asking.tsx";
import { Choice } from "../../parts/controls/choice.tsx";
import { plain } from "../../parts/text/plain.ts";
import { Swatch } from "../../parts/charts/stack.tsx";
import { number, textAt, loadTable } from "../../parts/data/full-table.ts";
import type { FullTable } from "../../parts/data/full-table.ts";
import { change, link } from "../../route.ts";
import { text } from "../../units.ts";
import { describedAs } from "./group-names.ts";
import type { JobProps } from "./index.tsx";
import { placeText } from "../../parts/text/place.ts";

const BY = [["kind", "kind"], ["group", "group"], ["size", "size"], ["line", "line"]] as const;
/** Rows shown here; the table has all. */
const MOST = 12;

export function Collectives(props: JobProps) {
  const { data, trace, params } = props;
  const by = BY.find(([name]) => name === params["by"])?.[0] ?? "kind";
  const asked = useQuery(() => loadTable(data, trace.id, "collectives", { by }), `${trace.id} ${by}`);
  return (
    <section aria-label="Collectives">
      <div class="job-head">
        <h2>Communication</h2>
        <Choice label="By" value={by as string} choices={BY} onChange={(value) => change({ by: value === "kind" ? undefined : value })} />
      </div>
      <QueryResult asked={asked}>{(table) => <Shown table={table} by={by} />}</QueryResult>
    </section>
  );
}

function Shown(props: { table: FullTable; by: string }) {
  const { table, by } = props;
  const rows = [...Array(table.rows).keys()];
  const split = rows.some((row) => number(table, "wait", row) !== null);
  const most = Math.max(...rows.map((row) => drawn(table, row)), 1);
  if (rows.length === 0) return <p class="muted">No collective is recorded.</p>;
  return (
    <>
      {split && (
        <ul class="stack-legend job-parts-legend">
          <li><Swatch colour="idle" />waiting for the last rank</li>
          <li><Swatch colour="collective" />moving data</li>
        </ul>
      )}
      <div class="job-wide">
        <table class="figures job-collectives">
          <thead>
            <tr>
              <th scope="col">Collective</th>
              <th scope="col" class="number">Count</th>
              <th scope="col" title={split ? "Sums; the mean of the ranks" : undefined}>{split ? "Wait and transfer" : "Time, waits included"}</th>
              {split && <th scope="col" class="number">Wait</th>}
              <th scope="col" class="number">{split ? "Transfer" : "Time"}</th>
              <th scope="col" class="number" title="Of each link of a ring, as NCCL's tests count">Bus bandwidth</th>
              <th scope="col" class="number" title="While the device did nothing else">Exposed</th>
              <th scope="col" class="number" title="Share of the time that other work hides">Hidden</th>
            </tr>
          </thead>
          <tbody>{rows.slice(0, MOST).map((row) => <Row key={row} {...{ table, row, by, split, most }} />)}</tbody>
        </table>
      </div>
      <p class="job-legend">
        <span class="muted">{rows.length > MOST && `the ${MOST} that take most time, of ${rows.length}`}</span>
        <a href={link("collectives", by === "kind" ? {} : { by })}>As a table</a>
        <a href={link("arrivals")}>One by one</a>
      </p>
    </>
  );
}

/** The time that a row's bar shows: where waits are known, they and the transfer are means of several ranks. */
function drawn(table: FullTable, row: number): number {
  const wait = number(table, "wait", row);
  return wait === null ? number(table, "time", row) ?? 0 : wait + (number(table, "transfer", row) ?? 0);
}

function Row(props: { table: FullTable; row: number; by: string; split: boolean; most: number }) {
  const { table, row, split, most } = props;
  const [time, wait, transfer] = ["time", "wait", "transfer"].map((name) => number(table, name, row));
  const share = (value: number | null | undefined) => `${(100 * (value ?? 0)) / most}%`;
  return (
    <tr>
      <th scope="row"><Name {...props} /></th>
      <td class="number">{text(number(table, "count", row), "count")}</td>
      <td class="job-bar">
        {wait !== null && <i title={`wait: ${text(wait ?? null, "ns")}`} style={{ width: share(wait), background: "var(--idle)" }} />}
        <i title={`transfer: ${text(transfer ?? null, "ns")}`} style={{ width: share(wait === null ? time : transfer), background: "var(--collective)" }} />
      </td>
      {split && <td class="number">{text(wait ?? null, "ns")}</td>}
      <td class="number">{text((split ? transfer : time) ?? null, "ns")}</td>
      <td class="number">{text(number(table, "bus_bandwidth", row), "gb/s")}</td>
      <td class="number">{text(number(table, "exposed", row), "ns")}</td>
      <td class="number">{text(number(table, "hidden", row), "ratio")}</td>
    </tr>
  );
}

function Name(props: { table: FullTable; row: number; by: string }) {
  const { table, row, by } = props;
  const of = (name: string) => textAt(table, name, row);
  const [file, line, size] = [of("file"), number(table, "line", row), number(table, "size", row)];
  const group = [of("axis"), describedAs(of("group_description")) ?? of("group")].filter((word) => word !== null);
  return (
    <>
      {by !== "group" && <b>{plain(of("collective") ?? "other")}</b>}
      {by === "size" && size !== null && ` ${text(size, "bytes")}`}
      {by === "line" && file !== null && (
        <> <a class="mono" title={plain(file)} href={link("lines", { file, ...(line === null ? {} : { line: String(line) }) })}>
          {plain(placeText(file.split(/[/\\]/).at(-1) ?? file, line))}
        </a></>
      )}
      <span class="muted"> {plain([...new Set(group)].join(" · "))}{number(table, "group_size", row) !== null && ` of ${text(number(table, "group_size", row), "count")}`}</span>
    </>
  );
}
