// Modules and operators of both recordings: a difference flame graph, and a table of the same tree.

import { useMemo, useState } from "preact/hooks";
import type { Metric } from "../../../data/api.ts";
import type { Box } from "../../../draw/tree.ts";
import { matches } from "../../../draw/tree.ts";
import { Choice } from "../../../parts/controls/choice.tsx";
import { treeState } from "../../../parts/trees/tree-state.ts";
import { SortHead, TreeGrid } from "../../../parts/trees/treegrid.tsx";
import { compareRows, nodeInAddress, visibleRows } from "../../../parts/trees/treerows.ts";
import { number, textAt } from "../../../parts/data/full-table.ts";
import { change } from "../../../route.ts";
import { countText, timeText } from "../../../units.ts";
import type { Deltas } from "./deltas.ts";
import { ALL, differenceOf, markOf } from "./deltas.ts";
import { Details } from "./details.tsx";
import type { DifferenceProps } from "../difference.tsx";
import { Flame } from "./flame.tsx";
import { DifferenceBar } from "../tables/sheet.tsx";
import { signed } from "../tables/signed.ts";

interface TreeProps extends DifferenceProps {
  deltas: Deltas;
  metrics: readonly Metric[];
}

export function Tree(props: TreeProps) {
  const { deltas, params } = props;
  const [hover, setHover] = useState<Box | null>(null);
  const focus = nodeInAddress(params["focus"], deltas.changes);
  const at = nodeInAddress(params["at"], deltas.changes);
  const find = params["find"] ?? "";
  const hits = useMemo(() => (find === "" ? null : matches(deltas.changes, find)), [deltas, find]);
  const choose = (node: number) => change({ at: node < 0 ? undefined : String(node) });
  const focusOn = (node: number) => {
    const to = node <= ALL ? undefined : String(node);
    change({ focus: to, at: to }, { replace: false });
  };
  const shared = { ...props, focus, at, hits, onChoose: choose, onFocus: focusOn };
  return (
    <section class="compare-section" aria-label="Modules and operators">
      <div class="compare-head-line">
        <h2>Modules and operators <span class="muted">time of the {deltas.metric} a step</span></h2>
        <Tools {...props} />
        {hits && <span role="status" class="compare-found">{hits.size === 0 ? "nothing matches" : `${countText(hits.size)} nodes match`}</span>}
        {deltas.left > 0 && <span class="muted">{countText(deltas.left)} nodes that take least are not here; `selftime compare --rows 0` has them</span>}
      </div>
      {deltas.table.rows === 1
        ? <p class="muted compare-none">Neither recording has operators in counted steps.</p>
        : (
          <>
            <Flame {...shared} onHover={setHover} />
            <Details {...shared} node={hover?.node ?? (at >= 0 ? at : focus)} joined={hover?.joined ?? 1} />
            <Rows {...shared} />
          </>
        )}
    </section>
  );
}

function Tools(props: TreeProps) {
  const { deltas, metrics, params } = props;
  return (
    <>
      <Choice
        label="Widths"
        value={params["widths"] ?? "after"}
        choices={[
          ["after", "after", "Widths are the time after; removed nodes are missing"],
          ["before", "before", "Widths are the time before; new nodes are missing"],
          ["both", "both", "One below the other, each over the full width"],
        ]}
        onChange={(widths) => change({ widths: widths === "after" ? undefined : widths })}
      />
      {metrics.length > 1 && (
        <Choice
          label="Time of the"
          value={deltas.metric}
          choices={metrics.map((metric) => [metric, metric] as const)}
          onChange={(metric) => change({ metric, focus: undefined, at: undefined, toggled: undefined })}
        />
      )}
    </>
  );
}

/** Nodes with at least this share of the largest difference are open at first. */
const OPEN = 0.1;

const COLUMNS: readonly (readonly [name: string, title: string, doc: string])[] = [
  ["total_before", "Before", "Total time before."],
  ["total_after", "After", "Total time after."],
  ["total_difference", "Difference", "Total time after minus before."],
];

interface RowsProps extends TreeProps {
  focus: number;
  at: number;
  hits: ReadonlySet<number> | null;
  onChoose: (node: number) => void;
  onFocus: (node: number) => void;
}

function Rows(props: RowsProps) {
  const { deltas, params, focus, at, hits } = props;
  const { changes } = deltas;
  const { toggled, sort, sorting, onToggle } = treeState(params, "-total_difference", "sort-tree");
  const rows = useMemo(() => {
    const isOpen = (node: number) => node === ALL || (deltas.most > 0 && (changes.total[node] ?? 0) >= OPEN * deltas.most);
    return visibleRows(changes, { root: focus, at, hits, toggled }, isOpen, ordered(deltas, sort));
  }, [deltas, focus, at, hits, sort, params["toggled"]]);
  return (
    <TreeGrid
      id="delta"
      label="Modules and operators, before and after"
      tree={changes}
      rows={rows}
      root={focus}
      at={at}
      hits={hits}
      columns={COLUMNS.length}
      head={
        <>
          <SortHead name="name" title="Module or operator" doc="What it is called." number={false} {...sorting} />
          {COLUMNS.map(([name, title, doc]) => (
            <SortHead key={name} name={name} title={title} doc={doc} {...(name === "total_difference" ? {} : { also: "compare-wide" })} {...sorting} />
          ))}
          <span role="columnheader" aria-hidden="true" />
          <span role="columnheader" title="Slower, faster, new or gone; empty if not significant.">Verdict</span>
          <SortHead name="difference" title="its own" doc="Self time after minus before." {...sorting} />
          <span role="columnheader" class="number" title="Calls per step, before and after.">Calls</span>
        </>
      }
      cells={(node) => <Cells deltas={deltas} node={node} />}
      classOf={(node) => `compare-is-${markOf(deltas, node)}`}
      onToggle={onToggle}
      onChoose={props.onChoose}
      onFocus={props.onFocus}
    />
  );
}

/** Compares siblings by a column; differences by absolute value. */
function ordered({ table }: Deltas, sort: string): (a: number, b: number) => number {
  const column = sort.replace(/^-/, "");
  if (!column.endsWith("difference")) return compareRows(table, sort);
  const sign = sort.startsWith("-") ? -1 : 1;
  const size = (node: number) => Math.abs(number(table, column, node) ?? 0);
  return (a, b) => sign * (size(a) - size(b)) || a - b;
}

function Cells(props: { deltas: Deltas; node: number }) {
  const { deltas, node } = props;
  const { table, most } = deltas;
  const difference = differenceOf(deltas, node);
  const own = number(table, "difference", node);
  const verdict = textAt(table, "total_verdict", node);
  const calls = (["calls_before", "calls_after"] as const).map((name) => number(table, name, node));
  return (
    <>
      <span role="gridcell" class="number compare-wide">{timeText(number(table, "total_before", node) ?? 0)}</span>
      <span role="gridcell" class="number compare-wide">{timeText(number(table, "total_after", node) ?? 0)}</span>
      <span role="gridcell" class="number">{signed(difference)}</span>
      <DifferenceBar role="gridcell" difference={difference} most={most} />
      <span role="gridcell" class={verdict === null ? "" : `compare-verdict-${verdict}`}>{verdict ?? ""}</span>
      <span role="gridcell" class="number muted">{own === null ? "" : signed(own)}</span>
      <span role="gridcell" class="number muted">{calls.some((count) => count === null) ? "" : calls.map((count) => countsText(count ?? 0)).join(" → ")}</span>
    </>
  );
}

/** Times a step: whole, or to a tenth where steps differ. */
export function countsText(count: number): string {
  return Number.isInteger(count) ? countText(count) : count.toFixed(1);
}
