// A table of a tree of times: rows by time, a column of shares, columns of figures. Modules and the
// profile of operators share it.

import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import type { Tree } from "../../draw/tree.ts";
import type { FullTable } from "../../parts/data/full-table.ts";
import { treeState } from "../../parts/trees/tree-state.ts";
import { SortHead, TreeGrid } from "../../parts/trees/treegrid.tsx";
import { rowsByTime } from "../../parts/trees/treerows.ts";
import type { PanelProps } from "../panel.ts";
import type { Head } from "./columns.ts";

/** What both tables are told by their panel. */
export interface RowsProps {
  params: PanelProps["params"];
  /** The root of the shown tree; -1 for all. */
  root: number;
  /** The chosen node; -1 for none. */
  at: number;
  hits: ReadonlySet<number> | null;
  onChoose: (node: number) => void;
  onFocus: (node: number) => void;
}

interface TreeTableProps extends RowsProps {
  /** What the ids of its rows begin with. */
  id: string;
  label: string;
  of: { tree: Tree; table: FullTable };
  /** The order of siblings without a choice. */
  usual: string;
  name: { title: string; doc: string };
  columns: readonly Head[];
  /** Whether siblings are sorted by their share too. */
  sortsShare?: boolean;
  share: (node: number) => ComponentChildren;
  figure: (head: Head, node: number) => ComponentChildren;
  classOf: (node: number) => string | false;
}

export function TreeTable(props: TreeTableProps) {
  const { of, params, root, at, hits, columns } = props;
  const { toggled, sort, sorting, onToggle } = treeState(params, props.usual);
  const rows = useMemo(
    () => rowsByTime(of, { root, at, hits, sort, toggled }),
    [of, root, at, hits, sort, params["toggled"]],
  );
  return (
    <TreeGrid
      id={props.id}
      label={props.label}
      tree={of.tree}
      rows={rows}
      root={root}
      at={at}
      hits={hits}
      columns={columns.length}
      head={
        <>
          <SortHead name="name" {...props.name} number={false} {...sorting} />
          {props.sortsShare
            ? <SortHead name="share" title="Share" doc="The row's share of all time." number={false} {...sorting} />
            : <span role="columnheader" class="tree-share-head">Share</span>}
          {columns.map(({ name, title, doc }) => <SortHead key={name} name={name} title={title} doc={`${doc}.`} {...sorting} />)}
        </>
      }
      cells={(node) => (
        <>
          {props.share(node)}
          {columns.map((head) => props.figure(head, node))}
        </>
      )}
      classOf={props.classOf}
      onToggle={onToggle}
      onChoose={props.onChoose}
      onFocus={props.onFocus}
    />
  );
}
