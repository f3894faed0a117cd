// The views that can be compared side by side, with their keys and measures (pure).

import type { Options } from "../../../data/api.ts";

export interface Key {
  name: string;
  text: string;
  columns: readonly string[];
  options: Options;
  /** Whether keys are unique; overlapping totals can be compared then, too. */
  isUnique: boolean;
}

export interface ComparableView {
  view: string;
  text: string;
  keys: readonly Key[];
  /** Columns to compare, by preference; the first with values in both is used. */
  measures: readonly string[];
  /** The columns whose rows add up. */
  sums: readonly string[];
}

function key(name: string, text: string, columns: readonly string[], options: Options = {}, isUnique = false): Key {
  return { name, text, columns, options, isUnique };
}

export const COMPARABLE_VIEWS: readonly ComparableView[] = [
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

export function measuresOf(comparable: ComparableView, key: Key): readonly string[] {
  return key.isUnique ? comparable.measures : comparable.measures.filter((measure) => comparable.sums.includes(measure));
}
