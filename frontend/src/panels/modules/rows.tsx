// The rows of the tree of modules, and their columns.

import { useMemo } from "preact/hooks";
import { cell } from "../../parts/data/full-table.ts";
import { text } from "../../units.ts";
import type { Head } from "./columns.ts";
import { headsThatSay } from "./columns.ts";
import { type Forest, passes } from "./forest.ts";
import { PassShare } from "./passes.tsx";
import type { RowsProps } from "./tree-table.tsx";
import { TreeTable } from "./tree-table.tsx";

export function Rows(props: RowsProps & { forest: Forest }) {
  const { forest } = props;
  const { total, whole } = forest.tree;
  const columns = useMemo(() => heads(forest), [forest]);
  return (
    <TreeTable
      {...props}
      id="module"
      label="Modules"
      of={forest}
      usual={`-${forest.by}`}
      name={{ title: "Module", doc: "Its class and number." }}
      columns={columns}
      share={(node) => <PassShare passes={passes(forest, node)} whole={whole} share={whole > 0 ? (total[node] ?? 0) / whole : 0} />}
      figure={({ name, unit }, node) => (
        <span key={name} role="gridcell" class="number">{text(cell(forest.table, name, node), unit)}</span>
      )}
      classOf={(node) => node === forest.outside && "outside"}
    />
  );
}

const DEVICE: readonly Head[] = [
  { name: "total_device_time", title: "Device", doc: "Total device time, with inner modules", unit: "ns" },
  { name: "device_time", title: "self", doc: "Device time that it launched itself", unit: "ns" },
];
const HOST: readonly Head[] = [
  { name: "total_cpu_time", title: "Host", doc: "Total host time, with inner modules", unit: "ns" },
  { name: "self_cpu_time", title: "self", doc: "Self host time, without inner modules", unit: "ns" },
];
const PASS_HEADS = [
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
function heads({ table, metric }: Forest): Head[] {
  const unit = metric === "device" ? "device_time" : "cpu_time";
  const ofPasses: Head[] = PASS_HEADS.map(([pass, title, doc]) => ({ name: `${pass}_${unit}`, title, doc, unit: "ns" }));
  const all = [...(metric === "device" ? [...DEVICE, ...HOST] : [...HOST, ...DEVICE]), ...ofPasses, ...REST];
  return headsThatSay(table, all, unit);
}
