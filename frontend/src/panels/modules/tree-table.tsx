// The rows of the tree: what each module takes, sorted among siblings.

import { useMemo } from "preact/hooks";
import { SortHead, TreeGrid } from "../../parts/treegrid.tsx";
import { numbersIn, toggled } from "../../parts/treerows.ts";
import { cell } from "../../parts/whole.ts";
import { change } from "../../route.ts";
import { shareText, text, timeText } from "../../units.ts";
import type { PanelProps } from "../panel.ts";
import { heads } from "./columns.ts";
import type { Forest } from "./forest.ts";
import { passes, shown } from "./forest.ts";

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
  const closed = numbersIn(params["toggled"]);
  const sort = params["sort"] ?? `-${forest.by}`;
  const rows = useMemo(
    () => shown(forest, { root, at, hits, sort, toggled: closed }),
    [forest, root, at, hits, sort, params["toggled"]],
  );
  const columns = useMemo(() => heads(forest), [forest]);
  const sorting = { sort, onSort: (next: string) => change({ sort: next }) };
  return (
    <TreeGrid
      id="module"
      label="Modules"
      tree={forest.tree}
      rows={rows}
      root={root}
      at={at}
      hits={hits}
      columns={columns.length}
      head={
        <>
          <SortHead name="name" title="Module" doc="Its class and number." number={false} {...sorting} />
          <span role="columnheader" class="tree-share-head">Share</span>
          {columns.map(({ name, title, doc }) => <SortHead key={name} name={name} title={title} doc={`${doc}.`} {...sorting} />)}
        </>
      }
      cells={(node) => (
        <>
          <Share forest={forest} node={node} />
          {columns.map(({ name, unit }) => (
            <span key={name} role="gridcell" class="number">{text(cell(forest.table, name, node), unit)}</span>
          ))}
        </>
      )}
      classOf={(node) => node === forest.outside && "outside"}
      // What is chosen keeps its row in sight: of a closed branch, the branch itself is chosen.
      onToggle={(node) => change({ toggled: toggled(closed, node), at: String(node) })}
      onChoose={props.onChoose}
      onFocus={props.onFocus}
    />
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
