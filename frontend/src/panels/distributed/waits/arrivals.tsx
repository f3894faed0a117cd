// One collective on all of its ranks, by one clock: when each came, its wait, what it did before.

import { useRef, useState } from "preact/hooks";
import type { Data } from "../../../data/api.ts";
import { Swatch } from "../../../parts/charts/stack.tsx";
import { QueryResult, useQuery } from "../../../parts/data/asking.tsx";
import { loadTable, number, textAt } from "../../../parts/data/full-table.ts";
import type { FullTable } from "../../../parts/data/full-table.ts";
import { labelsOf } from "../../../parts/data/labels.ts";
import { placeText } from "../../../parts/text/place.ts";
import { plain } from "../../../parts/text/plain.ts";
import { change, link } from "../../../route.ts";
import { text, timeText } from "../../../units.ts";
import type { JobProps } from "../index.tsx";
import { traceOf } from "../rank-traces.ts";
import { arrivalsOf, beforeOf, spanOf, spreadText } from "./spread.ts";
import type { Arrival, Before } from "./spread.ts";

const ROW = 26;
/** Visible rows; more are reached by scrolling. */
const MOST = 16;

/** The arrivals in a collective: a server computes these, a report holds some of all. */
function load(data: Data, trace: string, chosen: number): Promise<FullTable> {
  if (!data.inline) return loadTable(data, trace, "arrivals", { number: chosen });
  return loadTable(data, trace, "arrivals", {}, { where: [{ column: "number", op: "is", value: String(chosen) }] });
}

export function ArrivalChart(props: JobProps & { chosen: number }) {
  const { data, trace, chosen } = props;
  const asked = useQuery(() => load(data, trace.id, chosen), `${trace.id} ${chosen}`);
  return (
    <article class="job-arrivals" aria-label="The chosen collective">
      <QueryResult asked={asked}>{(table) => <Told {...props} table={table} />}</QueryResult>
    </article>
  );
}

function Told(props: JobProps & { chosen: number; table: FullTable }) {
  const { table, chosen, views, data } = props;
  const arrivals = arrivalsOf(table);
  const causes = labelsOf(views.get("arrivals"), "cause");
  const [row] = arrivals.map((one) => one.row);
  const close = () => change({ collective: undefined });
  const step = row === undefined ? null : number(table, "step", row);
  const size = row === undefined ? null : number(table, "bytes", row);
  const facts = [step === null ? null : `step ${step}`, size === null ? null : text(size, "bytes"), `number ${chosen}`];
  return (
    <>
      <div class="job-head">
        <h3>
          {plain((row === undefined ? null : textAt(table, "collective", row)) ?? "Collective")}{" "}
          <span class="muted">{facts.filter((fact) => fact !== null).join(" · ")}</span>
        </h3>
        <button type="button" class="quiet" aria-label="Close the chosen collective" onClick={close}>×</button>
      </div>
      {row === undefined ? (
        <p class="muted">{data.inline ? <>This report does not hold its arrivals; <code>selftime serve</code> shows them.</> : "The job has no such collective."}</p>
      ) : (
        <>
          <p>{spreadText(table, arrivals, causes)}</p>
          <ul class="stack-legend job-parts-legend">
            <li><Swatch colour="idle" />waiting for the last rank</li>
            <li><Swatch colour="collective" />moving data</li>
          </ul>
          <Rows {...props} arrivals={arrivals} />
        </>
      )}
    </>
  );
}

/** Only the rows that are seen are in the document. */
function Rows(props: JobProps & { table: FullTable; arrivals: readonly Arrival[] }) {
  const { arrivals } = props;
  const [top, scroll] = useState(0);
  const box = useRef<HTMLDivElement>(null);
  const span = spanOf(arrivals);
  const longest = Math.max(0, ...arrivals.map(({ wait }) => wait ?? 0));
  const first = Math.max(0, Math.floor(top / ROW) - 4);
  return (
    <div
      class="job-parts"
      ref={box}
      role="table"
      aria-label="When each rank came"
      aria-rowcount={arrivals.length + 1}
      tabIndex={arrivals.length > MOST ? 0 : -1}
      style={{ maxHeight: `${(MOST + 1) * ROW}px` }}
      onScroll={() => scroll(box.current?.scrollTop ?? 0)}
    >
      <div class="job-arrival job-part-head" role="row">
        <span role="columnheader">rank</span>
        <span role="columnheader">{timeText(span)} from the first arrival to the end</span>
        <span role="columnheader" class="number">came after</span>
        <span role="columnheader" class="number">waited</span>
        <span role="columnheader">before it, mostly</span>
      </div>
      <div role="rowgroup" style={{ height: `${arrivals.length * ROW}px`, position: "relative" }}>
        {arrivals.slice(first, first + MOST + 8).map((one, at) => <Row key={one.row} {...props} of={one} {...{ span, longest }} at={first + at} />)}
      </div>
    </div>
  );
}

function Row(props: JobProps & { table: FullTable; of: Arrival; span: number; longest: number; at: number }) {
  const { table, of, span, longest, at, views, job } = props;
  const spec = views.get("arrivals");
  const before = beforeOf(table, of.row, longest, labelsOf(spec, "longest"), labelsOf(spec, "cause"));
  const share = (time: number) => `${(100 * time) / span}%`;
  const wait = of.wait ?? 0;
  const slice = number(table, "id", of.row);
  const trace = traceOf(job, of.label);
  return (
    <div class="job-arrival" role="row" data-last={of.last} style={{ top: `${at * ROW}px` }}>
      <span role="cell">
        {trace.trace === undefined || slice === null
          ? plain(of.label)
          : <a href={link("timeline", { ...trace, slice: String(slice) })}>{plain(of.label)}</a>}
      </span>
      <span role="cell" class="job-track">
        <i style={{ left: share(of.after), width: share(wait), background: "var(--idle)" }} />
        <i style={{ left: share(of.after + wait), width: `max(2px, ${share(of.duration - wait)})`, background: "var(--collective)" }} />
      </span>
      <span role="cell" class="number">{of.after === 0 ? "first" : timeText(of.after)}</span>
      <span role="cell" class="number">{of.wait === null ? "unknown" : of.last ? "last" : timeText(of.wait)}</span>
      <span role="cell" class="job-before"><Work before={before} trace={trace} /></span>
    </div>
  );
}

function Work(props: { before: Before; trace: { trace?: string } }) {
  const { before, trace } = props;
  const { time, kind, name, file, line, more } = before;
  if (kind === null && more === null) return <span class="muted">unknown</span>;
  return (
    <>
      {more !== null && <b>{more}</b>}
      {more !== null && kind !== null && " · "}
      {kind !== null && <span title={time === null ? undefined : `${time} of own work since the previous collective`}>{kind}</span>}
      {file !== null && (
        <> <a class="mono" title={plain(file)} href={link("lines", { ...trace, file, ...(line === null ? {} : { line: String(line) }) })}>
          {plain(placeText(file.split(/[/\\]/).at(-1) ?? file, line))}
        </a></>
      )}
      {name !== null && <span class="mono muted" title={plain(name)}> {plain(name.slice(0, 90))}</span>}
    </>
  );
}
