// What ran on the chosen line.

import type { Filter } from "../../data/api.ts";
import { shortName } from "../../draw/names.ts";
import { QueryResult, useQuery } from "../../parts/data/asking.tsx";
import { timelineLinkParameters } from "../../parts/data/timeline-link.ts";
import { labelOfValue, labelsOf } from "../../parts/data/labels.ts";
import type { Labels } from "../../parts/data/labels.ts";
import { plain } from "../../parts/text/plain.ts";
import type { FullTable } from "../../parts/data/full-table.ts";
import { cell, number, textAt, loadTable } from "../../parts/data/full-table.ts";
import { link } from "../../route.ts";
import { bytesText, countText, text, timeText } from "../../units.ts";
import type { PanelProps } from "../panel.ts";
import type { Cost, Metric } from "./costs.ts";
import { splitPath } from "./costs.ts";
import { placeText } from "../../parts/text/place.ts";

interface RanProps extends PanelProps {
  file: string;
  line: number | null;
  cost: Cost | undefined;
  metric: Metric;
}

const MOST = 200;

export function Ran(props: RanProps) {
  const { file, line, cost, metric } = props;
  return (
    <section class="ran" aria-label="What ran on the line">
      <h2>
        <span class="mono" title={plain(file)}>{plain(placeText(splitPath(file).name, line))}</span>
        {cost?.function && <span class="muted"> in {plain(cost.function)}</span>}
        {cost !== undefined && line !== null && cost.operators > 0 && (
          <a href={link("operators", { by: "name+line", where: JSON.stringify(on(file, line)) })}>its operators</a>
        )}
        {cost !== undefined && line !== null && (
          <a href={link("flame", sandwichOfLine(file, line, cost.function, metric))}>callers and callees</a>
        )}
      </h2>
      {cost === undefined
        ? <p class="muted">Nothing was recorded on this line itself.</p>
        : <Figures cost={cost} labels={labelsOf(props.views.get("lines"), "how")} />}
      {cost !== undefined && line !== null && <Names {...props} line={line} />}
    </section>
  );
}

/** The address of what the function on the line was called from, and what it called. */
function sandwichOfLine(file: string, line: number, inside: string | null | undefined, metric: Metric): Record<string, string> {
  const words = { tree: "sandwich", file, line: String(line), ...(inside ? { function: inside } : {}) };
  return metric === "host" ? { ...words, metric } : words;
}

/** The line as conditions of a table. */
function on(file: string, line: number): Filter[] {
  return [
    { column: "file", op: "is", value: file },
    { column: "line", op: "is", value: String(line) },
  ];
}

function Figures({ cost, labels }: { cost: Cost; labels: Labels }) {
  const parts: [string, number][] = [
    ["device", cost.device],
    ["of it backward", cost.backwardDevice],
    ["of it recomputed", cost.recomputeDevice],
    ["host", cost.host],
    ["of it waits", cost.waits],
    ["of it backward", cost.backwardHost],
    ["of it recomputed", cost.recomputeHost],
    ["of it Python itself", cost.python],
  ];
  return (
    <p class="ran-figures">
      {parts.filter(([, time]) => time > 0).map(([name, time], at) => (
        <span key={at}><span class="muted">{name}</span> {timeText(time)}</span>
      ))}
      {cost.memory !== 0 && <span><span class="muted" title="Bytes allocated minus bytes released; what other lines release is not taken off">allocated, less released, in all steps</span> {bytesText(cost.memory)}</span>}
      {cost.how.map((how) => <span key={how} class="muted">{labelOfValue(labels, how).doc}</span>)}
    </p>
  );
}

function Names(props: RanProps & { line: number }) {
  const { data, trace, file, line, views } = props;
  const ask = async () => data.inline ? null : loadTable(data, trace.id, "occurrences", { file, line, by: "name" }, { sort: "-self" }, MOST);
  const asked = useQuery(ask, `${trace.id} ${file} ${line}`);
  if (!views.has("occurrences")) return null;
  if (data.inline) {
    return <p class="muted">What ran on the line is in the trace: <code>selftime serve</code> shows it here.</p>;
  }
  return <QueryResult asked={asked} what="what ran">{(table) => table && <Table {...props} table={table} />}</QueryResult>;
}

function Table(props: RanProps & { line: number; table: FullTable }) {
  const { table } = props;
  if (table.rows === 0) return <p class="muted">No operator and no kernel: the time is Python's own.</p>;
  return (
    <div class="ran-rows" tabIndex={0}>
      <table>
        <thead>
          <tr>
            <th scope="col">Name</th>
            <th scope="col">Kind</th>
            <th scope="col" class="number">Runs</th>
            <th scope="col" class="number">Time</th>
            <th scope="col" class="number">Self</th>
            <th scope="col" class="number">Median</th>
            <th scope="col" class="number">Longest</th>
          </tr>
        </thead>
        <tbody>
          {order(table, props.metric).map((row) => <Name key={row} table={table} row={row} />)}
        </tbody>
      </table>
      {table.total > table.rows && <p class="muted">{countText(table.total - table.rows)} more names</p>}
    </div>
  );
}

/** Sorts rows by self time, or by device time if that is the metric. */
function order(table: FullTable, metric: Metric): number[] {
  const rows = Array.from({ length: table.rows }, (_, row) => row);
  const works = (row: number) => ["kernel", "copy"].includes(textAt(table, "kind", row) ?? "");
  return metric === "device" ? [...rows.filter(works), ...rows.filter((row) => !works(row))] : rows;
}

function Name(props: { table: FullTable; row: number }) {
  const { table, row } = props;
  const name = textAt(table, "name", row) ?? "";
  const [id, start, longest] = [number(table, "id", row), number(table, "start", row), number(table, "longest", row)];
  const shown = (column: string, unit: "ns" | "count") => text(cell(table, column, row), unit);
  return (
    <tr>
      <td class="ran-name mono" title={plain(name)}>{plain(textAt(table, "kind", row) === "kernel" ? shortName(name) : name)}</td>
      <td class="muted">{textAt(table, "kind", row)}</td>
      <td class="number">{shown("count", "count")}</td>
      <td class="number">{shown("duration", "ns")}</td>
      <td class="number">{shown("self", "ns")}</td>
      <td class="number">{shown("median", "ns")}</td>
      <td class="number">
        {id !== null && start !== null
          ? <a href={link("timeline", timelineLinkParameters(start, longest ?? 0, id))} title="Show it in the timeline">{shown("longest", "ns")}</a>
          : shown("longest", "ns")}
      </td>
    </tr>
  );
}
