// What the map can be coloured by, and in which order its ranks can stand (pure).

import type { Job, RankOrder } from "../../../data/api.ts";
import type { LabelGroups } from "./heat.ts";

export interface Quantity {
  column: string;
  title: string;
  /** The variable of style.css. */
  hue: string;
  doc: string;
  /** Whether the colours begin at 0: where all values are alike, differences would not be seen. */
  fromZero: boolean;
}

export const QUANTITIES: readonly Quantity[] = [
  { column: "late", title: "lateness", hue: "loading", fromZero: true, doc: "By how much the rank came later than the median of the other ranks to a collective, at most" },
  { column: "own_work", title: "own work", hue: "runtime", fromZero: false, doc: "Of the step: all but communication with nothing beside it" },
  { column: "waited", title: "waits for others", hue: "collective", fromZero: true, doc: "In collectives, until the last rank had come" },
  { column: "time", title: "step time", hue: "memory", fromZero: false, doc: "Of the step, until it was done on host and device" },
  { column: "communication", title: "exposed", hue: "collective", fromZero: true, doc: "Of the step: a collective ran and nothing else on the device" },
  { column: "kernel", title: "kernels", hue: "kernel", fromZero: false, doc: "Of the step: a kernel but a collective ran" },
  { column: "data_loading", title: "data", hue: "loading", fromZero: true, doc: "Of the step: it waited for the next batch" },
  { column: "cpu", title: "host", hue: "operator", fromZero: true, doc: "Of the step: the device was idle, the host in an operator" },
];

export function quantityOf(name: string | undefined): Quantity {
  const [first] = QUANTITIES as readonly [Quantity];
  return QUANTITIES.find(({ column }) => column === name) ?? first;
}

/** The order that the address names; null for that of the ranks' numbers. */
export function orderOf(job: Job, name: string | undefined): RankOrder | null {
  return job.orders.find((order) => order.name === name) ?? null;
}

export function labelGroups(job: Job, order: RankOrder | null): LabelGroups {
  const labels = new Map(job.ranks.map(({ key, label }) => [key, label]));
  return (order?.groups ?? []).map(({ title, ranks }) => ({
    title,
    labels: ranks.flatMap((key) => labels.get(key) ?? []),
  }));
}

/** A chosen step of a rank, as the address holds it: the rank's key and the step's number. */
export function parseCell(job: Job, words: string | undefined): { label: string; step: number } | null {
  const [, key, step] = /^(\d{1,9})\.(-?\d{1,12})$/.exec(words ?? "") ?? [];
  const rank = job.ranks.find((one) => String(one.key) === key);
  return rank === undefined || step === undefined ? null : { label: rank.label, step: Number(step) };
}

export function formatCell(job: Job, label: string, step: number): string | undefined {
  const rank = job.ranks.find((one) => one.label === label);
  return rank === undefined ? undefined : `${rank.key}.${step}`;
}
