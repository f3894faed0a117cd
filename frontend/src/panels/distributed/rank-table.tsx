// What the mean step of each rank is spent on, on one scale.

import { useRef, useState } from "preact/hooks";
import { Choice } from "../../parts/controls/choice.tsx";
import { plain } from "../../parts/text/plain.ts";
import { Swatch } from "../../parts/charts/stack.tsx";
import type { JobAccount } from "../../data/account.ts";
import { number, textAt } from "../../parts/data/full-table.ts";
import type { FullTable } from "../../parts/data/full-table.ts";
import { change, link } from "../../route.ts";
import { timeText } from "../../units.ts";
import { CLASS_COLOURS } from "../answer/account/colours.ts";
import type { JobProps } from "./index.tsx";
import { traceOf } from "./rank-traces.ts";

const ROW = 26;
/** Visible rows; more are reached by scrolling. */
const MOST = 20;

export function RankTable(props: JobProps & { table: FullTable }) {
  const { table, params, job } = props;
  const parts = (job.account?.parts ?? []).map((part) => ({ ...part, colour: CLASS_COLOURS[part.class] ?? "other" }));
  const known = [...Array(table.rows).keys()].filter((row) => number(table, "time", row) !== null);
  const order = params["order"] === "late" || params["order"] === "time" ? params["order"] : "rank";
  if (known.length === 0) return null;
  const rows = order === "rank" ? known : [...known].sort((one, other) => (number(table, order, other) ?? -Infinity) - (number(table, order, one) ?? -Infinity));
  const most = Math.max(...known.map((row) => number(table, "time", row) ?? 0), 1);
  return (
    <section aria-label="The ranks side by side">
      <div class="job-head">
        <h2>{job.account?.title ?? "The mean step of each rank"}</h2>
        <Choice
          label="Order"
          value={order}
          choices={[["rank", "rank"], ["late", "lateness"], ["time", "step time"]]}
          onChange={(value) => change({ order: value === "rank" ? undefined : value })}
        />
      </div>
      <ul class="stack-legend job-parts-legend">
        {parts.map((part) => (
          <li key={part.class}><Swatch colour={part.colour} />{part.label} <span class="muted">{part.text}</span></li>
        ))}
      </ul>
      <Rows {...props} rows={rows} parts={parts} most={most} />
      <p class="job-legend"><span /><a href={link("ranks")}>As a table</a></p>
    </section>
  );
}

/** A class of time in its colour. */
type Part = JobAccount["parts"][number] & { colour: string };

interface RowsProps extends JobProps {
  table: FullTable;
  rows: readonly number[];
  parts: readonly Part[];
  most: number;
}

/** Only the rows that are seen are in the document. */
function Rows(props: RowsProps) {
  const { rows, table } = props;
  const [top, scroll] = useState(0);
  const box = useRef<HTMLDivElement>(null);
  const first = Math.max(0, Math.floor(top / ROW) - 4);
  const shown = rows.slice(first, first + MOST + 8);
  return (
    <div
      class="job-parts"
      ref={box}
      role="table"
      data-alike={rows.every((row) => textAt(table, "differs", row) === null)}
      aria-rowcount={rows.length + 1}
      tabIndex={rows.length > MOST ? 0 : -1}
      style={{ maxHeight: `${(MOST + 1) * ROW}px` }}
      onScroll={() => scroll(box.current?.scrollTop ?? 0)}
    >
      <div class="job-part job-part-head" role="row">
        <span role="columnheader">rank</span>
        <span role="columnheader">a step</span>
        <span role="columnheader" class="number">time</span>
        <span role="columnheader" class="number" title="By how much it comes later than the median of the other ranks">late</span>
        <span role="columnheader" class="number" title="In collectives, until the last rank had come">waited</span>
        <span role="columnheader">differs</span>
      </div>
      <div role="rowgroup" style={{ height: `${rows.length * ROW}px`, position: "relative" }}>
        {shown.map((row, at) => <Row key={row} {...props} row={row} at={first + at} />)}
      </div>
    </div>
  );
}

function Row(props: RowsProps & { row: number; at: number }) {
  const { table, row, at, parts, most, job } = props;
  const label = textAt(table, "label", row) ?? "";
  const times = job.account?.ranks.find((rank) => rank.label === label)?.times ?? [];
  const differs = textAt(table, "differs", row);
  const time = (name: string) => {
    const value = number(table, name, row);
    return value === null ? "-" : timeText(value);
  };
  return (
    <div class="job-part" role="row" data-differs={differs !== null} data-late={label === job.account?.late?.label} style={{ top: `${at * ROW}px` }}>
      <span role="cell"><a href={link("steps", traceOf(job, label))}>{plain(label)}</a></span>
      <span role="cell" class="job-bar"><Bar {...{ times, parts, most }} /></span>
      <span role="cell" class="number">{time("time")}</span>
      <span role="cell" class="number">{time("late")}</span>
      <span role="cell" class="number">{time("waited")}</span>
      <span role="cell" class="job-differs" title={differs ?? undefined}>{plain(differs ?? "")}</span>
    </div>
  );
}

function Bar(props: { times: readonly number[]; parts: readonly Part[]; most: number }) {
  const { times, parts, most } = props;
  return (
    <>
      {parts.map((part, at) => {
        const time = times[at] ?? 0;
        return time <= 0 ? null : (
          <i
            key={part.class}
            title={`${part.label}: ${timeText(time)}`}
            style={{ width: `${(100 * time) / most}%`, background: `var(--${part.colour})` }}
          />
        );
      })}
    </>
  );
}
