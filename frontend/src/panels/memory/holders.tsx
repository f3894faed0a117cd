// What holds a device's memory at its peak, or at a chosen time.

import { QueryResult, useQuery } from "../../parts/data/asking.tsx";
import { Choice } from "../../parts/controls/choice.tsx";
import type { Span } from "../../draw/span.ts";
import { timelineLinkParameters } from "../../parts/data/timeline-link.ts";
import { plain } from "../../parts/text/plain.ts";
import type { FullTable } from "../../parts/data/full-table.ts";
import { number, loadTable } from "../../parts/data/full-table.ts";
import { change, link } from "../../route.ts";
import { bytesText, countText, exactText, instantText, shareText } from "../../units.ts";
import type { PanelProps } from "../panel.ts";
import type { Curve } from "./curves.ts";
import { ofDevice } from "./curves.ts";
import { Against } from "./against.tsx";
import { Difference } from "./difference.tsx";
import { versusOf } from "./differences.ts";
import { groupWord } from "./freed.ts";
import { Freed } from "./freed.tsx";
import type { HolderGrouping } from "./holder.tsx";
import { BY, Holder } from "./holder.tsx";
import type { When } from "./stretch.ts";
import { whenOf } from "./stretch.ts";

const MOST = 200;
export interface HoldersProps extends PanelProps {
  curve: Curve;
  brush: Span | null;
  at: number | null;
}

export function Holders(props: HoldersProps) {
  const { data, trace, curve, params } = props;
  // A report carries the peak of the whole recording; that of a stretch is with the trace.
  const [brush, at] = data.inline ? [null, null] : [props.brush, props.at];
  const by = BY.find(([known]) => known === params["hold"])?.[0] ?? "category+operator+line";
  const when = whenOf(brush, at);
  const where = ofDevice(curve);
  const versus = versusOf(params["versus"]);
  const most = versus === null ? MOST : undefined; // a difference needs all rows
  const key = JSON.stringify([trace.id, by, when, where, most]);
  const asked = useQuery(() => loadTable(data, trace.id, "memory_peak", { by, ...when.options }, { where }, most), key);
  return (
    <section class="holders" aria-label="What holds the memory">
      <Choice label="By" value={by} choices={BY} onChange={(hold) => change({ hold: hold === "category+operator+line" ? undefined : hold })} />
      <Against {...props} when={when} />
      {data.inline && (props.brush ?? props.at) !== null && <OnlyThePeak />}
      <QueryResult asked={asked} what="who holds it">
        {(table) => versus === null
          ? <Table {...props} when={when} table={table} by={by} />
          : <Difference {...props} when={when} after={table} by={by} versus={versus} />}
      </QueryResult>
    </section>
  );
}

/** Shown in a report where an instant is chosen. */
export function OnlyThePeak() {
  return <p class="muted">A report shows the peak of the whole recording; <code>selftime serve</code> shows any moment.</p>;
}

function Table(props: HoldersProps & { table: FullTable; by: HolderGrouping; when: When }) {
  const { table, curve, when } = props;
  const time = number(table, "time", 0);
  const sum = table.totals["bytes"];
  const most = Math.max(...(table.columns["bytes"] ?? []).map(Number), 1);
  if (table.rows === 0 || time === null) return <p class="muted">Nothing is allocated on {plain(curve.title)} then.</p>;
  return (
    <>
      <p class="holders-when">
        {sum !== null && sum !== undefined && <strong>{bytesText(sum)} </strong>}
        {plain(curve.title)}, {when.words}, {instantText(time)}
        {" "}<a href={link("timeline", timelineLinkParameters(time, 0))}>show in the timeline</a>
      </p>
      <div class="holders-rows" tabIndex={0}>
        <table>
          <thead>
            <tr>
              <th scope="col">Held by</th><th scope="col" class="number">Bytes</th><th scope="col" class="number">Share</th>
              <th scope="col" class="number">Blocks</th><th scope="col" class="number">Allocated</th><th scope="col" class="number">Released</th>
            </tr>
          </thead>
          <tbody>{Array.from({ length: table.rows }, (_, row) => <Row key={row} {...props} row={row} most={most} />)}</tbody>
        </table>
        {table.total > table.rows && <p class="muted">{countText(table.total - table.rows)} smaller ones</p>}
      </div>
    </>
  );
}

function Row(props: HoldersProps & { table: FullTable; row: number; most: number; by: HolderGrouping }) {
  const { table, row, most, params } = props;
  const word = groupWord(table, row);
  const open = params["freed"] === word;
  const bytes = number(table, "bytes", row) ?? 0;
  const [share, blocks, growth] = ["share", "blocks", "growth_per_step"].map((name) => number(table, name, row));
  const [allocated, released] = [number(table, "allocated", row), number(table, "released", row)];
  return (
    <>
    <tr>
      <td class="holder">
        <i style={{ width: `${(100 * Math.max(bytes, 0)) / most}%` }} aria-hidden="true" />
        <button
          type="button"
          class="quiet holder-open"
          aria-expanded={open}
          aria-label="where it was released"
          title="Where it was released"
          onClick={() => change({ freed: open ? undefined : word })}
        >
          {open ? "▾" : "▸"}
        </button>
        <Holder table={table} row={row} by={props.by} />
        {growth !== null && growth !== undefined && growth > 0 && (
          <strong class="grows" title="It never falls from step to step, and keeps rising: a leak"> grows {bytesText(growth)} a step</strong>
        )}
      </td>
      <td class="number" title={exactText(bytes, "bytes")}>{bytesText(bytes)}</td>
      <td class="number">{share === null || share === undefined ? "-" : shareText(share)}</td>
      <td class="number">{blocks === null || blocks === undefined ? "-" : countText(blocks)}</td>
      <td class="number">{allocated === null ? "-" : <a href={link("timeline", timelineLinkParameters(allocated, 0))}>{instantText(allocated)}</a>}</td>
      <td class="number">
        {released !== null ? <a href={link("timeline", timelineLinkParameters(released, 0))}>{instantText(released)}</a> : allocated === null ? "-" : <span class="muted">still allocated</span>}
      </td>
    </tr>
    {open && <tr class="holder-freed"><td colSpan={6}><Freed {...props} group={word} /></td></tr>}
    </>
  );
}
