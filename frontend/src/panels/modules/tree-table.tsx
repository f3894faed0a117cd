// The rows of the tree of modules, and their columns.

import { useMemo } from "preact/hooks";
import { SortHead, TreeGrid } from "../../parts/trees/treegrid.tsx";
import { parseNumbers, toggleNumber } from "../../parts/trees/treerows.ts";
import { cell } from "../../parts/data/full-table.ts";
import { change } from "../../route.ts";
import { shareText, text, timeText } from "../../units.ts";
import type { PanelProps } from "../panel.ts";
import { type Forest, passes, shownRows } from "./forest.ts";
import type { Unit } from "../../data/api.ts";

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
  const closed = parseNumbers(params["toggled"]);
  const sort = params["sort"] ?? `-${forest.by}`;
  const rows = useMemo(
    () => shownRows(forest, { root, at, hits, sort, toggled: closed }),
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
      onToggle={(node) => change({ toggled: toggleNumber(closed, node), at: String(node) })}
      onChoose={props.onChoose}
      onFocus={props.onFocus}
    />
  );
}

/** A bar with the module's share by pass: forward, backward, recomputation. */
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

export interface Head {
  name: string;
  title: string;
  doc: string;
  unit: Unit;
}

const DEVICE: readonly Head[] = [
  { name: "total_device_time", title: "Device", doc: "Total device time, with inner modules", unit: "ns" },
  { name: "device_time", title: "self", doc: "Device time that it launched itself", unit: "ns" },
];
const HOST: readonly Head[] = [
  { name: "total_cpu_time", title: "Host", doc: "Total host time, with inner modules", unit: "ns" },
  { name: "self_cpu_time", title: "self", doc: "Self host time, without inner modules", unit: "ns" },
];
const PASSES = [
  ["forward", "Forward", "Of the total: not in the backward pass"],
  ["backward", "Backward", "Of the total: in the backward pass"],
  ["recompute", "Recompute", "Of the total: recomputed in the backward pass"],
] as const;
const REST: readonly Head[] = [
  { name: "calls", title: "Calls", doc: "Number of calls, without recomputation", unit: "count" },
  { name: "device_slices", title: "Kernels", doc: "Kernels, copies and memsets, with inner modules", unit: "count" },
  { name: "model_flops", title: "FLOPs", doc: "Modelled operations, with inner modules", unit: "flops" },
  { name: "device_memory", title: "Memory", doc: "Device bytes kept, with inner modules", unit: "bytes" },
  { name: "cpu_memory", title: "Host mem.", doc: "Host bytes kept, with inner modules", unit: "bytes" },
];

/** The columns of a table, those left out in which nothing is known or all is 0. */
export function heads({ table, metric }: Forest): Head[] {
  const unit = metric === "device" ? "device_time" : "cpu_time";
  const passes: Head[] = PASSES.map(([pass, title, doc]) => ({ name: `${pass}_${unit}`, title, doc, unit: "ns" }));
  const all = [...(metric === "device" ? [...DEVICE, ...HOST] : [...HOST, ...DEVICE]), ...passes, ...REST];
  const says = (name: string) => (table.columns[name] ?? []).some((cell) => cell !== null && cell !== 0);
  const oneWay = !says(`backward_${unit}`) && !says(`recompute_${unit}`);
  return all.filter(({ name }) => says(name) && !(oneWay && name === `forward_${unit}`));
}
