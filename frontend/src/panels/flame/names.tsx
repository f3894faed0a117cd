// Every name with its self and total time, beside the graph; a click opens its sandwich.

import { useEffect, useMemo, useRef } from "preact/hooks";
import { shortName } from "../../draw/names.ts";
import { scrollRowIntoView, useVisibleRange } from "../../parts/controls/window.ts";
import { plain } from "../../parts/text/plain.ts";
import { change } from "../../route.ts";
import { shareText, timeText } from "../../units.ts";
import type { PanelProps } from "../panel.ts";
import { sandwichOf } from "./arrangement.ts";
import { COLOURS, label } from "./frames.ts";
import type { NameColumn, NameRow } from "./names.ts";
import { sortOf, sortedNames } from "./names.ts";

const HEIGHT = 24;
/** Narrowest bar, as a share of the widest: a narrower one looks like a comma. */
const LEAST_BAR = 0.05;
const COLUMNS: readonly (readonly [NameColumn, string, string])[] = [
  ["name", "Name", "The name of the frame, module, annotation, operator, call or kernel"],
  ["self", "Self", "Time in it, without what it called"],
  ["total", "Total", "Time in it, with what it called; recursion counts once"],
  ["share", "Share", "Share of the total of all time"],
];

interface Props {
  params: PanelProps["params"];
  names: readonly NameRow[];
  chosen: NameRow | undefined;
}

export function Names(props: Props) {
  const { params, chosen } = props;
  const place = useRef<HTMLDivElement>(null);
  const [sort, find] = [params["sort"], params["find"] ?? ""];
  const rows = useMemo(() => sortedNames(props.names, sort, find), [props.names, sort, find]);
  const most = useMemo(() => Math.max(...props.names.map(({ self }) => self), 1), [props.names]);
  const at = chosen === undefined ? -1 : rows.indexOf(chosen);
  const sight = useVisibleRange(place, rows.length, HEIGHT);
  useEffect(() => {
    if (place.current !== null && at >= 0) scrollRowIntoView(place.current, at, HEIGHT, HEIGHT);
  }, [at, rows]);
  const choose = (row: NameRow, replace = false) => change(sandwichOf(params, row.name, row.kind), { replace });
  const pressed = (event: KeyboardEvent) => {
    if (event.altKey || event.ctrlKey || event.metaKey || event.target !== event.currentTarget) return;
    const by = { ArrowDown: 1, ArrowUp: -1, PageDown: 15, PageUp: -15, Home: -Infinity, End: Infinity }[event.key];
    if (by === undefined) return;
    event.preventDefault();
    const next = rows[Math.min(Math.max(at + by, 0), rows.length - 1)];
    if (next !== undefined) choose(next, true);
  };
  return (
    <div
      ref={place}
      class="flame-names"
      role="grid"
      aria-label="Names by time"
      aria-rowcount={rows.length + 1}
      aria-activedescendant={at >= sight.from && at < sight.to ? `flame-name-${at}` : undefined}
      tabIndex={0}
      onKeyDown={pressed}
    >
      <Head sort={sort} />
      <div style={{ height: `${sight.from * HEIGHT}px` }} />
      {rows.slice(sight.from, sight.to).map((row, place) => (
        <Row key={`${row.kind} ${row.name}`} row={row} at={sight.from + place} most={most} isChosen={row === chosen} onChoose={choose} />
      ))}
      <div style={{ height: `${(rows.length - sight.to) * HEIGHT}px` }} />
      {rows.length === 0 && <p class="muted">No name matches.</p>}
    </div>
  );
}

function Head(props: { sort: string | undefined }) {
  const { column, descending } = sortOf(props.sort);
  const sorted = (name: NameColumn) => {
    const isDown = name === column ? !descending : name !== "name";
    return change({ sort: `${isDown ? "-" : ""}${name}` });
  };
  return (
    <div class="flame-names-row flame-names-head" role="row" aria-rowindex={1}>
      {COLUMNS.map(([name, title, doc]) => (
        <span
          key={name}
          role="columnheader"
          class={name === "name" ? "" : "number"}
          aria-sort={name !== column ? "none" : descending ? "descending" : "ascending"}
        >
          <button type="button" class="quiet" title={doc} onClick={() => sorted(name)}>
            {title}{name === column && <span aria-hidden="true">{descending ? " ↓" : " ↑"}</span>}
          </button>
        </span>
      ))}
    </div>
  );
}

function Row(props: { row: NameRow; at: number; most: number; isChosen: boolean; onChoose: (row: NameRow) => void }) {
  const { row, at, most, isChosen } = props;
  return (
    <div
      id={`flame-name-${at}`}
      class="flame-names-row"
      role="row"
      aria-rowindex={at + 2}
      aria-selected={isChosen}
      onClick={() => props.onChoose(row)}
    >
      <span role="gridcell" class="flame-names-name" title={`${plain(row.name)} (${row.kind})`}>
        <i style={{ background: `var(--${COLOURS[row.kind] ?? "other"})` }} />
        <span>{plain(row.kind === "kernel" ? shortName(row.name) : label(row.name, row.kind))}</span>
      </span>
      <span role="gridcell" class="number flame-names-self">
        {row.self > LEAST_BAR * most && <i style={{ width: `${(row.self / most) * 100}%` }} />}{row.self > 0 && timeText(row.self)}
      </span>
      <span role="gridcell" class="number">{timeText(row.total)}</span>
      <span role="gridcell" class="number muted">{shareText(row.share)}</span>
    </div>
  );
}
