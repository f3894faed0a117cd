// Where the time goes, whether or not anything can be done about it: the heaviest lines and operators.

import "./heaviest.css";
import type { Data, Filter, TraceInfo } from "../../api.ts";
import { Answered, useAsked } from "../../parts/asking.tsx";
import { Lacks } from "../../parts/lacking.tsx";
import { plain } from "../../parts/plain.ts";
import { number, textAt } from "../../parts/whole.ts";
import { whole } from "../../parts/whole.ts";
import type { Whole } from "../../parts/whole.ts";
import { link } from "../../route.ts";
import { text } from "../../units.ts";

const SHOWN = 5;

interface Entry {
  name: string;
  title: string;
  href: string;
  time: number;
}

interface Heaviest {
  entries: Entry[];
  /** What the times are. */
  what: string;
  total: number;
  lacks: string[];
}

export function HeaviestSection(props: { data: Data; trace: TraceInfo; hasDevice: boolean }) {
  const { data, trace, hasDevice } = props;
  const lines = useAsked(() => heaviestLines(data, trace.id, hasDevice), `${trace.id} ${hasDevice}`);
  const operators = useAsked(() => heaviestOperators(data, trace.id, hasDevice), `${trace.id} ${hasDevice}`);
  return (
    <section class="answer-section">
      <h2>Where the time goes</h2>
      <div class="heaviest">
        <Answered asked={lines} what="the lines">
          {(found) => <List title="Lines" all={link("lines")} {...found} />}
        </Answered>
        <Answered asked={operators} what="the operators">
          {(found) => <List title="Operators" all={link("operators")} {...found} />}
        </Answered>
      </div>
    </section>
  );
}

async function heaviestLines(data: Data, trace: string, hasDevice: boolean): Promise<Heaviest> {
  const column = hasDevice ? "device_time" : "self_cpu_time";
  const table = await whole(data, trace, "lines", {}, { sort: `-${column}` }, SHOWN + 1);
  const entries = rowsOf(table).flatMap((row): Entry[] => {
    const file = textAt(table, "file", row);
    const line = number(table, "line", row);
    if (file === null) return [];
    const at = line === null ? file : `${file}:${line}`;
    const function_ = textAt(table, "function", row);
    return [
      {
        name: shortened(at),
        title: plain(function_ === null ? at : `${at} in ${function_}`),
        href: link("lines", line === null ? { file } : { file, line: String(line) }),
        time: number(table, column, row) ?? 0,
      },
    ];
  });
  const what = hasDevice ? "device time" : "self CPU time";
  return { entries: told(entries), what, total: table.totals[column] ?? 0, lacks: table.lacks };
}

async function heaviestOperators(data: Data, trace: string, hasDevice: boolean): Promise<Heaviest> {
  const column = hasDevice ? "self_device_time_total" : "self_cpu_time_total";
  const where: Filter[] = [{ column: "kind", op: "is", value: "operator" }];
  const query = { sort: `-${column}`, where };
  const table = await whole(data, trace, "operators", {}, query, SHOWN);
  const entries = rowsOf(table).map((row): Entry => {
    const name = textAt(table, "name", row) ?? "";
    const narrowed = JSON.stringify([...where, { column: "name", op: "is", value: name }]);
    return {
      name: plain(name),
      title: plain(name),
      href: link("operators", { sort: `-${column}`, where: narrowed }),
      time: number(table, column, row) ?? 0,
    };
  });
  const what = hasDevice ? "self device time" : "self CPU time";
  return { entries: told(entries), what, total: table.totals[column] ?? 0, lacks: table.lacks };
}

function rowsOf(table: Whole): number[] {
  return Array.from({ length: table.rows }, (_, row) => row);
}

function told(entries: readonly Entry[]): Entry[] {
  return entries.filter((entry) => entry.time > 0).slice(0, SHOWN);
}

/** A place by the last two parts of its path: enough to know the file, the title has all. */
function shortened(place: string): string {
  const parts = place.split("/");
  return plain(parts.length > 3 ? `…/${parts.slice(-2).join("/")}` : place);
}

function List(props: Heaviest & { title: string; all: string }) {
  const { title, all, entries, what, total, lacks } = props;
  const most = Math.max(0, ...entries.map((entry) => entry.time));
  return (
    <div class="heaviest-list">
      <h3>{title} <span class="muted">by {what}</span></h3>
      {entries.length === 0 && lacks.length === 0 && <p class="muted">None took any.</p>}
      <Lacks lacks={lacks} />
      <ol>
        {entries.map((entry) => (
          <li key={entry.title}>
            <a class="mono" href={entry.href} title={entry.title}>{entry.name}</a>
            <span class="heaviest-bar"><i style={{ width: `${(100 * entry.time) / most}%` }} /></span>
            <span class="number">{text(entry.time, "ns")}</span>
            <span class="number muted">{total > 0 ? text(entry.time / total, "ratio") : ""}</span>
          </li>
        ))}
      </ol>
      {entries.length > 0 && <a href={all}>All {title.toLowerCase()}</a>}
    </div>
  );
}
