// Which columns of the view `modules` the tree table shows, and what is written over them.

import type { Unit } from "../../api.ts";
import type { Forest } from "./forest.ts";

export interface Head {
  name: string;
  title: string;
  doc: string;
  unit: Unit;
}

const DEVICE: readonly Head[] = [
  { name: "total_device_time", title: "Device", doc: "Device time of it and the modules within", unit: "ns" },
  { name: "device_time", title: "self", doc: "Device time that it launched itself", unit: "ns" },
];
const HOST: readonly Head[] = [
  { name: "total_cpu_time", title: "Host", doc: "Host time of it and the modules within", unit: "ns" },
  { name: "self_cpu_time", title: "self", doc: "Host time in it and in no module within", unit: "ns" },
];
const PASSES = [
  ["forward", "Forward", "Of the total: not in the backward pass"],
  ["backward", "Backward", "Of the total: in the backward pass"],
  ["recompute", "Recompute", "Of the total: recomputed in the backward pass"],
] as const;
const REST: readonly Head[] = [
  { name: "calls", title: "Calls", doc: "How many times it was called, recomputation apart", unit: "count" },
  { name: "device_slices", title: "Kernels", doc: "Kernels, copies and fills, with those within", unit: "count" },
  { name: "model_flops", title: "FLOPs", doc: "Operations by model, with those within", unit: "flops" },
  { name: "device_memory", title: "Memory", doc: "Device bytes kept, with those within", unit: "bytes" },
  { name: "cpu_memory", title: "Host mem.", doc: "Host bytes kept, with those within", unit: "bytes" },
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
