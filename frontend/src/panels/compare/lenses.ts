// Which views can be laid side by side, by which keys, and what of them is compared (pure).

import type { Options } from "../../api.ts";

export interface Key {
  name: string;
  text: string;
  columns: readonly string[];
  options: Options;
  /** Whether no two rows have the same key: then totals, which overlap, can be compared too. */
  isUnique: boolean;
}

export interface Lens {
  view: string;
  text: string;
  keys: readonly Key[];
  /** Columns that are compared, the best first; of those that have nothing in both, the next. */
  measures: readonly string[];
  /** Those of them that add up, whatever rows have in common. */
  sums: readonly string[];
}

function key(name: string, text: string, columns: readonly string[], options: Options = {}, isUnique = false): Key {
  return { name, text, columns, options, isUnique };
}

export const LENSES: readonly Lens[] = [
  {
    view: "operators",
    text: "operators",
    keys: [
      key("name", "name", ["name", "kind"], {}, true),
      key("shape", "name and shape", ["name", "kind", "input_shapes"], { by: "shape" }, true),
    ],
    measures: ["self_device_time_total", "self_cpu_time_total", "device_time_total", "cpu_time_total", "count"],
    // Device time stands at the operator and at its kernels.
    sums: ["self_cpu_time_total", "count"],
  },
  {
    view: "lines",
    text: "lines",
    keys: [key("function", "function", ["file", "function"]), key("line", "line", ["file", "line"])],
    measures: ["device_time", "self_cpu_time", "waits", "operators", "device_slices"],
    sums: ["device_time", "self_cpu_time", "waits", "operators", "device_slices"],
  },
  {
    view: "memory_operators",
    text: "memory",
    keys: [key("name", "operator", ["name", "device_type"])],
    measures: ["self_allocation_size", "self_size_increase", "self_allocations"],
    sums: ["self_allocation_size", "self_size_increase", "self_allocations"],
  },
];

export function measuresOf(lens: Lens, key: Key): readonly string[] {
  return key.isUnique ? lens.measures : lens.measures.filter((measure) => lens.sums.includes(measure));
}
