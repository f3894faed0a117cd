// A table of a tree: rows opened and closed, walked by the arrows. Modules and Compare share it.

import "./treegrid.css";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { Tree } from "../../draw/tree.ts";
import { plain } from "../text/plain.ts";
import type { Row } from "./treerows.ts";
import { scrollRowIntoView, useVisibleRange } from "../controls/window.ts";

const HEIGHT = 24;

export interface TreeGridProps {
  /** What the ids of its rows begin with. */
  id: string;
  label: string;
  tree: Tree;
  rows: readonly Row[];
  /** The root of the shown tree; -1 for all. */
  root: number;
  /** The chosen node; -1 for none. */
  at: number;
  hits: ReadonlySet<number> | null;
  /** How many columns of numbers there are. */
  columns: number;
  head: ComponentChildren;
  /** The cells beside a node's name. */
  cells: (node: number) => ComponentChildren;
  /** More classes of a node's row. */
  classOf?: (node: number) => string | false;
  onToggle: (node: number) => void;
  onChoose: (node: number) => void;
  onFocus: (node: number) => void;
}

export function TreeGrid(props: TreeGridProps) {
  const { id, rows, at } = props;
  const place = useRef<HTMLDivElement>(null);
  const sight = useVisibleRange(place, rows.length, HEIGHT);
  useEffect(() => {
    const row = rows.findIndex((known) => known.node === at);
    if (place.current !== null && row >= 0) scrollRowIntoView(place.current, row, HEIGHT, HEIGHT);
  }, [at, rows]);
  return (
    <div
      ref={place}
      class="tree-table"
      role="treegrid"
      aria-label={props.label}
      aria-rowcount={rows.length + 1}
      tabIndex={0}
      aria-activedescendant={at >= 0 ? `${id}-${at}` : undefined}
      onKeyDown={(event) => pressed(event, props)}
      style={{ "--columns": props.columns }}
    >
      <div class="tree-row tree-head" role="row" aria-rowindex={1}>{props.head}</div>
      <div style={{ height: `${sight.from * HEIGHT}px` }} />
      {rows.slice(sight.from, sight.to).map((row, at) => (
        <OneRow key={row.node} row={row} number={sight.from + at + 2} {...props} />
      ))}
      <div style={{ height: `${(rows.length - sight.to) * HEIGHT}px` }} />
    </div>
  );
}

function OneRow(props: TreeGridProps & { row: Row; number: number }) {
  const { id, tree, row, at, hits } = props;
  const name = plain(tree.name[row.node] ?? "");
  const classes = ["tree-row", row.node === at && "chosen", hits?.has(row.node) && "hit", props.classOf?.(row.node)];
  return (
    <div
      id={`${id}-${row.node}`}
      class={classes.filter(Boolean).join(" ")}
      role="row"
      aria-level={row.depth + 1}
      aria-expanded={row.open ?? undefined}
      aria-selected={row.node === at}
      aria-rowindex={props.number}
      onClick={() => props.onChoose(row.node)}
      onDblClick={() => props.onFocus(row.node)}
    >
      <span role="rowheader" class="tree-name" style={{ "--depth": Math.min(row.depth, 24) }} title={name}>
        {row.open === null
          ? <i class="tree-leaf" />
          : <Twist open={row.open} onToggle={() => props.onToggle(row.node)} />}
        {name}
      </span>
      {props.cells(row.node)}
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

/** The head of a column, which sorts siblings. */
export function SortHead(props: {
  name: string;
  title: string;
  doc: string;
  /** By which column they are sorted, with "-" before it for descending. */
  sort: string;
  number?: boolean;
  /** One more class. */
  also?: string;
  onSort: (sort: string) => void;
}) {
  const { name, title, doc, sort, number = true } = props;
  const way = sort === name ? "ascending" : sort === `-${name}` ? "descending" : "none";
  return (
    <span role="columnheader" class={`${number ? "number" : ""} ${props.also ?? ""}`} aria-sort={way}>
      <button
        type="button"
        class="quiet"
        title={`${doc} Sorts siblings.`}
        onClick={() => props.onSort(sort === `-${name}` ? name : `-${name}`)}
      >
        {title}{way !== "none" && <span aria-hidden="true">{way === "ascending" ? " ↑" : " ↓"}</span>}
      </button>
    </span>
  );
}

function pressed(event: KeyboardEvent, props: TreeGridProps): void {
  const { at, tree, root, rows } = props;
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
  else if (event.key === "ArrowRight" && row) row.open === false ? props.onToggle(row.node) : row.open && to(place + 1);
  else if (event.key === "ArrowLeft" && row) row.open ? props.onToggle(row.node) : to(rows.findIndex((one) => one.node === tree.parent[at]));
  else if (event.key === "Enter" && row) props.onFocus(row.node);
  else if (event.key === "Backspace") props.onFocus(root < 0 ? -1 : (tree.parent[root] ?? -1));
  else return;
  event.preventDefault();
}
