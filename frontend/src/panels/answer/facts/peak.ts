// The peak of each device's memory, from the view `memory_peak` (pure).

import { number, textAt } from "../../../parts/data/full-table.ts";
import type { FullTable } from "../../../parts/data/full-table.ts";

export interface Peak {
  /** The device as the panel of memory names it, and as its address does. */
  title: string;
  key: string;
  bytes: number;
  /** The size of the device's memory; null if unknown, as of a host. */
  capacity: number | null;
}

/** The peaks, that of accelerators before that of the host; `capacities` are by number of device. */
export function peaksOf(table: FullTable, capacities: ReadonlyMap<number, number>): Peak[] {
  const peaks = new Map<string, Peak>();
  for (let row = 0; row < table.rows; row++) {
    const type = textAt(table, "device_type", row);
    const device = number(table, "device", row);
    const key = `${type ?? "unknown"}:${device ?? ""}`;
    const isHost = type === "CPU";
    const title = isHost ? "host" : `${type ?? "device"} ${device ?? ""}`.trim();
    const capacity = isHost || device === null ? null : capacities.get(device) ?? null;
    const known = peaks.get(key) ?? { title, key, bytes: 0, capacity };
    peaks.set(key, { ...known, bytes: known.bytes + (number(table, "bytes", row) ?? 0) });
  }
  const all = [...peaks.values()].filter((peak) => peak.bytes > 0);
  return [...all.filter((peak) => peak.title !== "host"), ...all.filter((peak) => peak.title === "host")];
}
