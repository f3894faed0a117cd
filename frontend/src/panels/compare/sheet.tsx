// The merged table: A, B, difference and ratio.

import { useMemo, useRef } from "preact/hooks";
import type { Cell, Unit } from "../../api.ts";
import { plain } from "../../parts/plain.ts";
import { useInSight } from "../../parts/window.ts";
import { change, link } from "../../route.ts";
import { fixed, text } from "../../units.ts";
import type { PanelProps } from "../panel.ts";
import type { Row, Sort } from "./merging.ts";
import { rowOf, sorted } from "./merging.ts";
import type { Sides } from "./sides.ts";

const HEIGHT = 24;
const SORTS: readonly Sort[] = ["key", "a", "b", "difference", "ratio"];

interface SheetProps {
  rows: readonly Row[];
  heads: readonly string[];
  params: PanelProps["params"];
  /** Whether the rows have an order of their own, kept until another is asked for. */
  inOrder: boolean;
  linkTo: ((key: readonly Cell[]) => [panel: string, params: Record<string, string>]) | null;
  sides: Sides;
  /** Whether the sum of the rows means something. */
  totals: boolean;
}

export function Sheet(props: SheetProps) {
  const { rows, heads, params, inOrder } = props;
  const place = useRef<HTMLDivElement>(null);
  const asked = params["sort"];
  const by = SORTS.find((known) => known === asked?.replace(/^-/, "")) ?? (inOrder ? null : "difference");
  const descending = asked === undefined || asked.startsWith("-");
  const find = (params["find"] ?? "").toLowerCase();
  const shown = useMemo(() => {
    const hits = find === "" ? rows : rows.filter((row) => row.key.join(" ").toLowerCase().includes(find));
    return by === null ? hits : sorted(hits, by, descending);
  }, [rows, find, by, descending]);
  const most = useMemo(() => largest(shown), [shown]);
  const sight = useInSight(place, shown.length, HEIGHT);
  const sum = useMemo(() => summed(shown), [shown]);
  return (
    <div
      ref={place}
      class="compare-sheet"
      role="table"
      aria-label="Both, side by side"
      aria-rowcount={shown.length + 1}
      tabIndex={0}
      style={{ "--keys": heads.map((_, at) => (at === 0 ? "minmax(160px, 2.2fr)" : "minmax(70px, 1fr)")).join(" ") }}
    >
      <Head heads={heads} by={by} descending={descending} />
      <div style={{ height: `${sight.from * HEIGHT}px` }} />
      {shown.slice(sight.from, sight.to).map((row, at) => (
        <OneRow key={sight.from + at} {...props} row={row} most={most.get(row.unit) ?? 1} />
      ))}
      <div style={{ height: `${(shown.length - sight.to) * HEIGHT}px` }} />
      {shown.length === 0 && <p class="muted compare-none">{rows.length === 0 ? "Both recordings have nothing of this." : "Nothing matches."}</p>}
      {props.totals && shown.length > 1 && (
        <div class="compare-row compare-total" role="row">
          <span role="rowheader">{find === "" ? "all" : "all that match"}</span>
          {heads.slice(1).map((head) => <span key={head} role="cell" />)}
          <Amounts row={sum} most={1} bar={false} />
        </div>
      )}
    </div>
  );
}

/** The largest difference of each unit: bars of one unit are of one scale. */
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

function Head(props: { heads: readonly string[]; by: Sort | null; descending: boolean }) {
  const { heads, by, descending } = props;
  const button = (sort: Sort, title: string) => (
    <button type="button" class="quiet" onClick={() => change({ sort: by === sort && descending ? sort : `-${sort}` })}>
      {title}{by === sort && <span aria-hidden="true">{descending ? " ↓" : " ↑"}</span>}
    </button>
  );
  const direction = (sort: Sort) => (by === sort ? (descending ? "descending" : "ascending") : "none");
  return (
    <div class="compare-row compare-head" role="row">
      {heads.map((head, at) => (
        <span key={head} role="columnheader" {...(at === 0 ? { "aria-sort": direction("key") } as const : {})}>{at === 0 ? button("key", head) : head}</span>
      ))}
      <span role="columnheader" class="number" aria-sort={direction("a")}>{button("a", "A")}</span>
      <span role="columnheader" class="number" aria-sort={direction("b")}>{button("b", "B")}</span>
      <span role="columnheader" class="number" aria-sort={direction("difference")}>{button("difference", "B − A")}</span>
      <span role="columnheader" aria-hidden="true" />
      <span role="columnheader" class="number" aria-sort={direction("ratio")}>{button("ratio", "B : A")}</span>
    </div>
  );
}

function OneRow(props: SheetProps & { row: Row; most: number }) {
  const { row, linkTo, sides } = props;
  const to = linkTo?.(row.key);
  return (
    <div class="compare-row" role="row">
      {row.key.map((part, at) => (
        <span key={at} role={at === 0 ? "rowheader" : "cell"} title={plain(String(part ?? ""))}>
          {part === null ? <span class="muted">{at === 0 ? "not known" : ""}</span> : plain(String(part))}
        </span>
      ))}
      <Amounts {...props} bar {...(to ? { links: [link(to[0], { ...to[1], trace: sides.a.id }), link(to[0], { ...to[1], trace: sides.b.id })] } : {})} />
    </div>
  );
}

function Amounts(props: { row: Row; most: number; bar: boolean; links?: [string, string] }) {
  const { row, most, bar, links } = props;
  const { a, b, difference, ratio, unit } = row;
  const size = most > 0 ? Math.abs(difference) / most : 0;
  const amount = (value: number | null, to: string | undefined) =>
    value === null ? <span class="muted">none</span> : to ? <a href={to}>{text(value, unit)}</a> : text(value, unit);
  return (
    <>
      <span role="cell" class="number">{amount(a, links?.[0])}</span>
      <span role="cell" class="number">{amount(b, links?.[1])}</span>
      <span role="cell" class="number">{difference === 0 ? "0" : `${difference > 0 ? "+" : "−"}${text(Math.abs(difference), unit)}`}</span>
      <span role="cell" class="compare-bar" aria-hidden="true">
        {bar && difference !== 0 && <i class={difference > 0 ? "more" : "less"} style={{ width: `${50 * Math.min(size, 1)}%` }} />}
      </span>
      <span role="cell" class="number">{ratioText(a, b, ratio)}</span>
    </>
  );
}

function ratioText(a: number | null, b: number | null, ratio: number | null): string {
  if (a === null) return "only in B";
  if (b === null) return "only in A";
  return ratio === null ? "-" : `${fixed(ratio, 2)}×`;
}
