// The time of a row's slices, split by name, line, stack, shape, thread or step.

import type { Data, Options } from "../../../data/api.ts";
import { shortName } from "../../../draw/names.ts";
import { QueryResult, useQuery } from "../../../parts/data/asking.tsx";
import { Choice } from "../../../parts/controls/choice.tsx";
import { plain } from "../../../parts/text/plain.ts";
import type { FullTable } from "../../../parts/data/full-table.ts";
import { cell, number, textAt, loadTable } from "../../../parts/data/full-table.ts";
import { change, link } from "../../../route.ts";
import { countText, shareText, timeText } from "../../../units.ts";
import { placeText } from "../../../parts/text/place.ts";

export type By = "name" | "line" | "stack" | "shape" | "thread" | "step";

const KEYS: Readonly<Record<By, string>> = {
  name: "name", line: "line", stack: "stack", shape: "input_shapes", thread: "thread", step: "step",
};
const WAYS = (Object.keys(KEYS) as By[]).map((by) => [by, by] as const);
const MOST = 12;

interface Props {
  data: Data;
  trace: string;
  origin: Options;
  by: By;
}

export function Split(props: Props) {
  const { data, trace, origin, by } = props;
  const key = JSON.stringify([trace, origin, by]);
  const ask = () => loadTable(data, trace, "occurrences", { ...origin, by, top: 0 }, {}, MOST);
  const asked = useQuery(ask, key);
  return (
    <section>
      <Choice label="Time by" value={by} choices={WAYS} onChange={(next) => change({ split: next })} />
      <QueryResult asked={asked} what="the slices">{(table) => <Rows table={table} by={by} />}</QueryResult>
    </section>
  );
}

function Rows(props: { table: FullTable; by: By }) {
  const { table, by } = props;
  const rows = Array.from({ length: table.rows }, (_, row) => row);
  if (rows.every((row) => cell(table, KEYS[by], row) === null)) {
    return <p class="muted">No {by} of them is known.</p>;
  }
  const rest = table.total - table.rows;
  return (
    <>
      <ul class="drawer-split">
        {rows.map((row) => <SplitRow key={row} table={table} by={by} row={row} />)}
      </ul>
      {rest > 0 && <p class="muted">and {countText(rest)} more</p>}
    </>
  );
}

function SplitRow(props: { table: FullTable; by: By; row: number }) {
  const { table, by, row } = props;
  const share = number(table, "share", row) ?? 0;
  const time = number(table, "duration", row);
  return (
    <li>
      <span class="drawer-share" style={{ width: `${Math.min(share, 1) * 100}%` }} />
      <span class="drawer-what"><What table={table} by={by} row={row} /></span>
      <span class="number" title={time === null ? undefined : `${timeText(time)} in ${countText(number(table, "count", row) ?? 0)} slices`}>
        {time === null ? "–" : timeText(time)}
      </span>
      <span class="number muted">{shareText(share)}</span>
    </li>
  );
}

function What(props: { table: FullTable; by: By; row: number }) {
  const { table, by, row } = props;
  const value = cell(table, KEYS[by], row);
  if (by === "line") {
    const file = textAt(table, "file", row);
    if (file === null) return <span class="muted">unknown line</span>;
    if (value === null) return <span class="mono" title={plain(file)}>{plain(tail(file))}</span>;
    const words = placeText(tail(file), String(value));
    return <a class="mono" title={plain(placeText(file, String(value)))} href={link("lines", { file, line: String(value) })}>{plain(words)}</a>;
  }
  if (value === null) return <span class="muted">unknown</span>;
  const words = plain(String(value).slice(0, 2000));
  if (by === "stack") {
    return (
      <span class="mono drawer-stack" title={words.replaceAll(";", "\n")}>
        {words.split(";").map((frame, at) => <span key={at}>{shortName(frame)}</span>)}
      </span>
    );
  }
  return <span class="mono" title={words}>{by === "step" ? `step ${words}` : words}</span>;
}

/** The last two parts of a path. */
function tail(path: string): string {
  return path.split(/[/\\]/).slice(-2).join("/");
}
