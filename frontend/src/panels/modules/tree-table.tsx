// The rows of the tree: opened and closed, sorted among siblings, walked by the arrows.

import { useEffect, useMemo, useRef } from "preact/hooks";
import { plain } from "../../parts/plain.ts";
import { cell } from "../../parts/whole.ts";
import { reveal, useInSight } from "../../parts/window.ts";
import { change } from "../../route.ts";
import { shareText, text, timeText } from "../../units.ts";
import type { PanelProps } from "../panel.ts";
import type { Head } from "./columns.ts";
import { heads } from "./columns.ts";
import type { Forest, Row } from "./forest.ts";
import { numbersIn, passes, shown, toggled } from "./forest.ts";

const HEIGHT = 24;

interface RowsProps {
  forest: Forest;
  params: PanelProps["params"];
  root: number;
  at: number;
  hits: ReadonlySet<number> | null;
  onChoose: (node: number) => void;
  onFocus: (node: number) => void;
}

export function Rows(props: RowsProps) {
  const { forest, params, root, at, hits } = props;
  const place = useRef<HTMLDivElement>(null);
  const closed = numbersIn(params["toggled"]);
  const sort = params["sort"] ?? `-${forest.by}`;
  const rows = useMemo(
    () => shown(forest, { root, at, hits, sort, toggled: closed }),
    [forest, root, at, hits, sort, params["toggled"]],
  );
  const columns = useMemo(() => heads(forest), [forest]);
  const sight = useInSight(place, rows.length, HEIGHT);
  useEffect(() => {
    const row = rows.findIndex((known) => known.node === at);
    if (place.current !== null && row >= 0) reveal(place.current, row, HEIGHT, HEIGHT);
  }, [at, rows]);
  const toggle = (row: Row) => {
    // What is chosen keeps its row in sight: of a closed branch, the branch itself is chosen.
    change({ toggled: toggled(closed, row.node), at: String(row.node) });
  };
  return (
    <div
      ref={place}
      class="tree-table"
      role="treegrid"
      aria-label="Modules"
      aria-rowcount={rows.length + 1}
      tabIndex={0}
      aria-activedescendant={at >= 0 ? `module-${at}` : undefined}
      onKeyDown={(event) => pressed(event, rows, props, toggle)}
      style={{ "--columns": columns.length }}
    >
      <HeadRow columns={columns} sort={sort} />
      <div style={{ height: `${sight.from * HEIGHT}px` }} />
      {rows.slice(sight.from, sight.to).map((row, place) => (
        <OneRow
          key={row.node}
          row={row}
          number={sight.from + place + 2}
          columns={columns}
          onToggle={() => toggle(row)}
          {...props}
        />
      ))}
      <div style={{ height: `${(rows.length - sight.to) * HEIGHT}px` }} />
    </div>
  );
}

function HeadRow(props: { columns: readonly Head[]; sort: string }) {
  const { columns, sort } = props;
  const sorted = (name: string) => {
    if (sort === name) return "ascending" as const;
    return sort === `-${name}` ? ("descending" as const) : undefined;
  };
  const button = (name: string, title: string, doc: string) => (
    <button
      type="button"
      class="quiet"
      title={`${doc}. Sorts siblings.`}
      onClick={() => change({ sort: sort === `-${name}` ? name : `-${name}` })}
    >
      {title}{sorted(name) && <span aria-hidden="true">{sorted(name) === "ascending" ? " ↑" : " ↓"}</span>}
    </button>
  );
  return (
    <div class="tree-row tree-head" role="row" aria-rowindex={1}>
      <span role="columnheader" aria-sort={sorted("name") ?? "none"}>{button("name", "Module", "Its class and number")}</span>
      <span role="columnheader" class="tree-share-head">Share</span>
      {columns.map(({ name, title, doc }) => (
        <span key={name} role="columnheader" class="number" aria-sort={sorted(name) ?? "none"}>
          {button(name, title, doc)}
        </span>
      ))}
    </div>
  );
}

function OneRow(props: RowsProps & { row: Row; number: number; columns: readonly Head[]; onToggle: () => void }) {
  const { forest, row, at, hits, columns } = props;
  const { table, tree } = forest;
  const name = plain(tree.name[row.node] ?? "");
  const classes = ["tree-row", row.node === at && "chosen", hits?.has(row.node) && "hit", row.node === forest.outside && "outside"];
  return (
    <div
      id={`module-${row.node}`}
      class={classes.filter(Boolean).join(" ")}
      role="row"
      aria-level={row.depth + 1}
      aria-expanded={row.open ?? undefined}
      aria-selected={row.node === at}
      aria-rowindex={props.number}
      onClick={() => props.onChoose(row.node)}
      onDblClick={() => props.onFocus(row.node)}
    >
      <span role="rowheader" class="tree-name" style={{ paddingLeft: `${Math.min(row.depth, 24) * 14}px` }} title={name}>
        {row.open === null
          ? <i class="tree-leaf" />
          : <Twist open={row.open} onToggle={props.onToggle} />}
        {name}
      </span>
      <Share forest={forest} node={row.node} />
      {columns.map((column) => (
        <span key={column.name} role="gridcell" class="number">{text(cell(table, column.name, row.node), column.unit)}</span>
      ))}
    </div>
  );
}

function Twist(props: { open: boolean; onToggle: () => void }) {
  const clicked = (event: MouseEvent) => {
    event.stopPropagation();
    props.onToggle();
  };
  return (
    <button type="button" class="tree-twist quiet" tabIndex={-1} aria-label={props.open ? "close" : "open"} onClick={clicked}>
      <svg viewBox="0 0 10 10" width="10" height="10" aria-hidden="true">
        <path d={props.open ? "M1 3 L5 7 L9 3" : "M3 1 L7 5 L3 9"} />
      </svg>
    </button>
  );
}

/** Its share of all there is, in three: forward, backward, recomputed. */
function Share(props: { forest: Forest; node: number }) {
  const { forest, node } = props;
  const whole = forest.tree.whole;
  const share = whole > 0 ? (forest.tree.total[node] ?? 0) / whole : 0;
  const parts = passes(forest, node);
  const names = ["forward", "backward", "recompute"];
  const title = parts.map((time, at) => `${names[at]} ${timeText(time)}`).join(", ");
  return (
    <span role="gridcell" class="tree-share" title={title}>
      <span class="tree-bar" aria-hidden="true">
        {parts.map((time, at) => (
          <i key={at} class={`pass-${names[at]}`} style={{ width: `${whole > 0 ? (100 * time) / whole : 0}%` }} />
        ))}
      </span>
      <span class="number">{shareText(share)}</span>
    </span>
  );
}

function pressed(event: KeyboardEvent, rows: readonly Row[], props: RowsProps, toggle: (row: Row) => void): void {
  const { at, forest, root } = props;
  const place = rows.findIndex((row) => row.node === at);
  const row = rows[place];
  const to = (index: number) => {
    const next = rows[Math.min(Math.max(index, 0), rows.length - 1)];
    if (next !== undefined) props.onChoose(next.node);
  };
  if (event.altKey || event.ctrlKey || event.metaKey) return;
  if (event.key === "ArrowDown") to(place + 1);
  else if (event.key === "ArrowUp") to(place - 1);
  else if (event.key === "PageDown") to(place + 15);
  else if (event.key === "PageUp") to(place - 15);
  else if (event.key === "Home") to(0);
  else if (event.key === "End") to(rows.length - 1);
  else if (event.key === "ArrowRight" && row) row.open === false ? toggle(row) : row.open && to(place + 1);
  else if (event.key === "ArrowLeft" && row) row.open ? toggle(row) : to(rows.findIndex((one) => one.node === forest.tree.parent[at]));
  else if (event.key === "Enter" && row) props.onFocus(row.node);
  else if (event.key === "Backspace") props.onFocus(root < 0 ? -1 : (forest.tree.parent[root] ?? -1));
  else return;
  event.preventDefault();
}
