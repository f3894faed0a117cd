// Details of a row: its slices, their durations and origins, and all cells.

import { useEffect, useRef } from "preact/hooks";
import type { Data, Options, ViewSpec } from "../../../data/api.ts";
import { QueryResult, useQuery } from "../../../parts/data/asking.tsx";
import { PartOf } from "../../../parts/numbers/part-of.tsx";
import { plain } from "../../../parts/text/plain.ts";
import type { FullTable } from "../../../parts/data/full-table.ts";
import { number, loadTable } from "../../../parts/data/full-table.ts";
import { link } from "../../../route.ts";
import { isText, valueAt } from "../../../data/table.ts";
import { countText, grouped, instantText, timeText } from "../../../units.ts";
import type { PanelProps } from "../../panel.ts";
import { timelineLink, wordsOf } from "../cell.tsx";
import { labelOf } from "../layout/columns.ts";
import type { Found } from "../query/rows.ts";
import { binsOf } from "./bins.ts";
import { Distribution } from "./distribution.tsx";
import type { ValueOf } from "./origins.ts";
import { originOf, originWords, sandwichWords } from "./origins.ts";
import { sliceOfRow } from "./slice-of-row.ts";
import { SliceTable } from "./slice-table.tsx";
import type { By } from "./split.tsx";
import { Split } from "./split.tsx";
import { placeText } from "../../../parts/text/place.ts";

const PART_OF = "Its longest slice is part of";
/** So many slices are listed; all of them are one click further. */
const LISTED = 50;

interface DrawerProps extends PanelProps {
  spec: ViewSpec;
  found: Found;
  row: number;
  total: number;
  options: Options;
  onRow: (row: number | null) => void;
}

export function Drawer(props: DrawerProps) {
  const { spec, found, row, options, trace, data } = props;
  const valueOf: ValueOf = (name) => {
    const values = found.page.columns[name];
    return values === undefined ? null : valueAt(values, found.at);
  };
  const body = useRef<HTMLDivElement>(null);
  useEffect(() => body.current?.scrollTo(0, 0), [row]);
  const origin = originOf(spec.name, valueOf, options);
  const hasSlices = origin !== null && props.views.has("occurrences");
  const slice = sliceOfRow(spec.name, spec.columns, valueOf);
  return (
    <aside class="drawer" aria-label="The row in full">
      <Heading {...props} valueOf={valueOf} sandwich={sandwichWords(spec.name, valueOf, origin)} />
      <div ref={body} class="drawer-body">
        {hasSlices && <Behind data={data} trace={trace.id} origin={origin} split={props.params["split"]} />}
        {slice !== null && <section><PartOf key={slice} data={data} trace={trace.id} slice={slice} title={PART_OF} /></section>}
        <Cells spec={spec} valueOf={valueOf} />
      </div>
    </aside>
  );
}

function Heading(props: DrawerProps & { valueOf: ValueOf; sandwich: Record<string, string> | null }) {
  const { spec, row, total, valueOf, onRow } = props;
  const title = titleOf(spec, valueOf);
  const [file, line] = [valueOf("file"), valueOf("line")];
  // a run's own clock is not the trace's
  const instant = spec.columns.find(({ name, unit }) => unit === "instant" && (name === "start" || name === "trace_start"));
  const start = instant === undefined ? null : valueOf(instant.name);
  const lasting = ["longest", "duration", "time"].map(valueOf).find((value) => typeof value === "number");
  return (
    <header class="drawer-head">
      <div class="drawer-steps">
        <span class="muted">row {grouped(String(row + 1))} of {grouped(String(total))}</span>
        <button type="button" class="quiet" aria-label="The row before" disabled={row === 0} onClick={() => onRow(row - 1)}>↑</button>
        <button type="button" class="quiet" aria-label="The next row" disabled={row + 1 >= total} onClick={() => onRow(row + 1)}>↓</button>
        <button type="button" class="quiet" aria-label="Close" title="Close (Esc)" onClick={() => onRow(null)}>×</button>
      </div>
      <h2 class="mono" title={title.slice(0, 1500)}>{title.slice(0, 600)}</h2>
      <p class="drawer-links">
        {typeof file === "string" && line !== null && (
          <a href={link("lines", { file, line: String(line) })}>Source line {line}</a>
        )}
        {props.sandwich !== null && <a href={link("flame", props.sandwich)}>Callers and callees</a>}
        {typeof start === "number" && (
          <a href={timelineLink(start, typeof lasting === "number" ? lasting : 0, null)}>Timeline at {instantText(start)}</a>
        )}
      </p>
    </header>
  );
}

/** What the row is about: its first column, or the first text there is if that is not known. */
function titleOf(spec: ViewSpec, valueOf: ValueOf): string {
  const known = spec.columns.filter((column) => valueOf(column.name) !== null && valueOf(column.name) !== "");
  const [first] = spec.columns;
  const column = first && (known.includes(first) ? first : known.find((one) => isText(one.unit)));
  if (column === undefined) return "";
  const words = wordsOf(column, valueOf(column.name));
  if (!isText(column.unit)) return `${labelOf(column.name)} ${words}`;
  const line = column.name === "file" ? valueOf("line") : null;
  return typeof line === "number" ? placeText(words, line) : words;
}

interface BehindProps {
  data: Data;
  trace: string;
  origin: Options;
  split: string | undefined;
}

/** The slices of the row. */
interface Told {
  names: FullTable;
  bins: FullTable;
  slices: FullTable;
}

async function told({ data, trace, origin }: BehindProps): Promise<Told> {
  const ask = (options: Options, rows: number) =>
    loadTable(data, trace, "occurrences", { ...origin, ...options }, {}, rows);
  const [names, bins, slices] = await Promise.all([
    ask({ by: "name" }, 2),
    ask({ by: "duration" }, 1000),
    ask({ by: "slice", top: LISTED }, LISTED),
  ]);
  return { names, bins, slices };
}

const WAYS: ReadonlySet<string> = new Set(["name", "line", "stack", "shape", "thread", "step"]);

function Behind(props: BehindProps) {
  const { origin, split } = props;
  const asked = useQuery(() => told(props), JSON.stringify([props.trace, origin]));
  const isMixed = origin["name"] === undefined && origin["like"] === undefined;
  const by = split !== undefined && WAYS.has(split) ? (split as By) : isMixed ? "name" : "line";
  return (
    <>
      <section>
        <h3>{originWords(origin)}</h3>
        <QueryResult asked={asked} what="the slices">{(found) => <Summary {...found} />}</QueryResult>
      </section>
      <Split {...props} by={by} />
      <section>
        <h3>Longest first</h3>
        <QueryResult asked={asked} what="the slices">{(found) => <Listed {...found} origin={origin} isMixed={isMixed} />}</QueryResult>
      </section>
    </>
  );
}

function Summary(props: Told) {
  const { names, bins } = props;
  const drawn = binsOf(bins);
  const count = bins.totals["count"] ?? 0;
  const time = bins.totals["duration"] ?? null;
  // a median of names that differ would be of no use
  const isOne = names.total === 1;
  const [median, p95, longest] = ["median", "p95", "longest"].map((name) => (isOne ? number(names, name, 0) : null));
  if (count === 0) return <p class="muted">The recording has no slices of this row.</p>;
  return (
    <>
      <p class="drawer-sums">
        <span><b>{countText(count)}</b> {count === 1 ? "slice" : "slices"}</span>
        {time !== null && <span><b>{timeText(time)}</b> in all</span>}
        {median != null && <span>median <b>{timeText(median)}</b></span>}
        {p95 != null && <span>p95 <b>{timeText(p95)}</b></span>}
        {longest != null && <span>longest <b>{timeText(longest)}</b></span>}
      </p>
      {drawn && <Distribution bins={drawn} count={count} median={median ?? null} p95={p95 ?? null} />}
    </>
  );
}

function Listed(props: Told & { origin: Options; isMixed: boolean }) {
  const { slices, bins, origin, isMixed } = props;
  const count = bins.totals["count"] ?? 0;
  if (slices.rows === 0) return null;
  const words = Object.fromEntries(Object.entries(origin).map(([name, value]) => [name, String(value)]));
  return (
    <>
      <SliceTable table={slices} names={isMixed} />
      {count > slices.rows && (
        <p><a href={link("occurrences", words)}>All {countText(count)} slices as a table</a></p>
      )}
    </>
  );
}

/** Every cell that is known, with what it means. */
function Cells(props: { spec: ViewSpec; valueOf: ValueOf }) {
  const { spec, valueOf } = props;
  const known = spec.columns.filter((column) => valueOf(column.name) !== null);
  return (
    <section>
      <h3>All columns</h3>
      <dl class="drawer-cells">
        {known.map((column) => (
          <div key={column.name}>
            <dt title={column.name}>{labelOf(column.name)}</dt>
            <dd class={isText(column.unit) ? "mono" : "number"}>{shown(wordsOf(column, valueOf(column.name)))}</dd>
            <dd class="drawer-doc">{plain(column.doc)}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

const LONGEST = 4000;

function shown(words: string): string {
  return words.length > LONGEST ? `${words.slice(0, LONGEST)} … (${countText(words.length - LONGEST)} more characters)` : words;
}

