// A table with before, after, difference and change.

import { useMemo, useRef } from "preact/hooks";
import type { Cell, Pair, Unit } from "../../../data/api.ts";
import { plain } from "../../../parts/text/plain.ts";
import { useVisibleRange } from "../../../parts/controls/window.ts";
import { change, link } from "../../../route.ts";
import { fixed, text } from "../../../units.ts";
import type { PanelProps } from "../../panel.ts";
import type { Row, Sort } from "./merging.ts";
import { rowOf, sortRows } from "./merging.ts";
import { signed, signedShare } from "./signed.ts";

const HEIGHT = 24;
const SORTS: readonly Sort[] = ["key", "a", "b", "difference", "ratio"];

interface SheetProps {
  rows: readonly Row[];
  heads: readonly string[];
  params: PanelProps["params"];
  /** Whether rows keep their own order by default. */
  inOrder: boolean;
  /** The URL parameter of the sort key. */
  word: string;
  /** Only rows whose keys contain it. */
  find: string;
  linkTo: ((key: readonly Cell[]) => [panel: string, params: Record<string, string>]) | null;
  /** The two traces, for links. */
  pair?: Pair;
  label: string;
  /** Whether the sum of the rows is meaningful. */
  totals: boolean;
}

export function Sheet(props: SheetProps) {
  const { rows, heads, params, inOrder, word } = props;
  const isTold = rows[0]?.told !== undefined;
  const place = useRef<HTMLDivElement>(null);
  const asked = params[word];
  const by = SORTS.find((known) => known === asked?.replace(/^-/, "")) ?? (inOrder ? null : "difference");
  const descending = asked === undefined || asked.startsWith("-");
  const find = props.find.toLowerCase();
  const shown = useMemo(() => {
    const hits = find === "" ? rows : rows.filter((row) => row.key.join(" ").toLowerCase().includes(find));
    return by === null ? hits : sortRows(hits, by, descending);
  }, [rows, find, by, descending]);
  const most = useMemo(() => largest(shown), [shown]);
  const sight = useVisibleRange(place, shown.length, HEIGHT);
  const sum = useMemo(() => summed(shown), [shown]);
  return (
    <div
      ref={place}
      class={isTold ? "compare-sheet compare-sheet-told" : "compare-sheet"}
      role="table"
      aria-label={props.label}
      aria-rowcount={shown.length + 1}
      tabIndex={0}
      style={{ "--keys": ["minmax(160px, 2.2fr)", ...heads.slice(1).map(() => "minmax(70px, 1fr)")].join(" ") }}
    >
      <Head {...props} by={by} descending={descending} />
      <div style={{ height: `${sight.from * HEIGHT}px` }} />
      {shown.slice(sight.from, sight.to).map((row, at) => (
        <OneRow key={sight.from + at} {...props} row={row} most={most.get(row.unit) ?? 1} />
      ))}
      <div style={{ height: `${(shown.length - sight.to) * HEIGHT}px` }} />
      {shown.length === 0 && <p class="muted compare-none">{rows.length === 0 ? "Neither recording has such rows." : "Nothing matches."}</p>}
      {props.totals && shown.length > 1 && (
        <div class="compare-row compare-total" role="row">
          <span role="rowheader">{find === "" ? "all" : "all that match"}</span>
          {heads.slice(1).map((head) => <span key={head} role="cell" class="compare-key" />)}
          <Amounts row={sum} most={1} bar={false} isTold={isTold} />
        </div>
      )}
    </div>
  );
}

/** The largest difference by unit, for the scale of the bars. */
function largest(rows: readonly Row[]): Map<Unit, number> {
  const most = new Map<Unit, number>();
  for (const { unit, difference } of rows) most.set(unit, Math.max(most.get(unit) ?? 0, Math.abs(difference)));
  return most;
}

function summed(rows: readonly Row[]): Row {
  const a = rows.reduce((sum, row) => sum + (row.a ?? 0), 0);
  const b = rows.reduce((sum, row) => sum + (row.b ?? 0), 0);
  return rowOf([], a, b, rows[0]?.unit ?? "count");
}

function Head(props: SheetProps & { by: Sort | null; descending: boolean }) {
  const { heads, by, descending, word, rows } = props;
  const isTold = rows[0]?.told !== undefined;
  const button = (sort: Sort, title: string) => (
    <button type="button" class="quiet" onClick={() => change({ [word]: by === sort && descending ? sort : `-${sort}` })}>
      {title}{by === sort && <span aria-hidden="true">{descending ? " ↓" : " ↑"}</span>}
    </button>
  );
  const direction = (sort: Sort) => (by === sort ? (descending ? "descending" : "ascending") : "none");
  return (
    <div class="compare-row compare-head" role="row">
      {heads.map((head, at) => (
        <span key={head} role="columnheader" class={at === 0 ? "" : "compare-key"} {...(at === 0 ? { "aria-sort": direction("key") } as const : {})}>{at === 0 ? button("key", head) : head}</span>
      ))}
      <span role="columnheader" class="number" aria-sort={direction("a")}>{button("a", "Before")}</span>
      <span role="columnheader" class="number" aria-sort={direction("b")}>{button("b", "After")}</span>
      <span role="columnheader" class="number" aria-sort={direction("difference")}>{button("difference", "Difference")}</span>
      <span role="columnheader" aria-hidden="true" />
      <span role="columnheader" class="number" aria-sort={direction("ratio")}>{button("ratio", isTold ? "Change" : "After : before")}</span>
      {isTold && <span role="columnheader" title="Slower, faster, new or gone; empty if not significant.">Verdict</span>}
    </div>
  );
}

function OneRow(props: SheetProps & { row: Row; most: number }) {
  const { row, linkTo, pair } = props;
  const to = linkTo?.(row.key);
  return (
    <div class="compare-row" role="row">
      {row.key.map((part, at) => (
        <span key={at} role={at === 0 ? "rowheader" : "cell"} class={`${at === 0 ? "" : "compare-key"} ${typeof part === "number" ? "number" : ""}`} title={keyText(part)}>
          {part === null ? <span class="muted">{at === 0 ? "unknown" : ""}</span> : keyText(part)}
        </span>
      ))}
      <Amounts {...props} bar isTold={row.told !== undefined} {...(to && pair ? { links: [link(to[0], { ...to[1], trace: pair.before }), link(to[0], { ...to[1], trace: pair.after })] } : {})} />
    </div>
  );
}

/** A name, or a number such as a line's or a mean count. */
function keyText(part: Cell): string {
  if (typeof part === "number" && !Number.isInteger(part)) return part.toFixed(1);
  return plain(String(part ?? ""));
}

function Amounts(props: { row: Row; most: number; bar: boolean; isTold: boolean; links?: [string, string] }) {
  const { row, most, bar, links } = props;
  const { a, b, difference, unit } = row;
  const amount = (value: number | null, to: string | undefined) =>
    value === null ? <span class="muted">none</span> : to ? <a href={to}>{text(value, unit)}</a> : text(value, unit);
  return (
    <>
      <span role="cell" class="number">{amount(a, links?.[0])}</span>
      <span role="cell" class="number">{amount(b, links?.[1])}</span>
      <span role="cell" class="number" title={surely(row)}>{signed(difference, unit)}</span>
      <DifferenceBar role="cell" difference={bar ? difference : 0} most={most} />
      {props.isTold ? <Told row={row} /> : <span role="cell" class="number">{ratioText(row)}</span>}
    </>
  );
}

/** A bar for a difference, to the left if negative. */
export function DifferenceBar(props: { role: "cell" | "gridcell"; difference: number; most: number }) {
  const { role, difference, most } = props;
  const size = most > 0 ? Math.abs(difference) / most : 0;
  return (
    <span role={role} class="compare-bar" aria-hidden="true">
      {difference !== 0 && <i class={difference > 0 ? "more" : "less"} style={{ width: `${50 * Math.min(size, 1)}%` }} />}
    </span>
  );
}

/** The change and what is said of it; of a sum only the change. */
function Told({ row }: { row: Row }) {
  const { a, difference, told } = row;
  const change = told === undefined ? (a !== null && a > 0 ? difference / a : null) : told.change;
  const verdict = told?.verdict ?? null;
  return (
    <>
      <span role="cell" class="number">{signedShare(change)}</span>
      <span role="cell" class={verdict === null ? "" : `compare-verdict-${verdict}`} title={surely(row)}>{verdict ?? ""}</span>
    </>
  );
}

function surely({ told, unit }: Row): string | undefined {
  if (told === undefined || told.low === null || told.high === null) return undefined;
  return `${signed(told.low, unit)} to ${signed(told.high, unit)}, 95 %`;
}

function ratioText({ a, b, ratio }: Row): string {
  if (a === null) return "only after";
  if (b === null) return "only before";
  return ratio === null ? "-" : `${fixed(ratio, 2)}×`;
}
