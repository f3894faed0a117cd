// A second trace below the first: which one, and which of its instants lies at which of the first's.

import type { TraceInfo } from "../../../data/api.ts";
import type { Step } from "../drawing/viewport.ts";

/** `own` and `other` are the numbers of steps that begin at the same instant; `ns` is by how much it is later. */
export type Alignment = { by: "origin" } | { by: "step"; own: number; other: number } | { by: "offset"; ns: number };

/** The name of a trace among traces side by side. */
export function labelOf({ run, worker, span, name }: TraceInfo): string {
  return [run, worker, span].filter(Boolean).join(", ") || name;
}

/** Two names without the words at their begin and end that they share, as there is little room. */
export function distinctLabels(one: string, other: string): [string, string] {
  if (one === other) return ["first", "second"];
  const words = [one, other].map((name) => name.split(/(?<=[-_./, ])|(?=[-_./, ])/)) as [string[], string[]];
  const [first, second] = words;
  while (first.length > 1 && second.length > 1 && first[0] === second[0]) for (const list of words) list.shift();
  while (first.length > 1 && second.length > 1 && first.at(-1) === second.at(-1)) for (const list of words) list.pop();
  return [first.join(""), second.join("")];
}

/** `step.3`, `step.3.5` (step 3 with the other's step 5), an offset in ns, or nothing: the origins. */
export function parseAlignment(text: string | undefined): Alignment {
  const steps = /^step\.(-?\d{1,15})(?:\.(-?\d{1,15}))?$/.exec(text ?? "");
  if (steps !== null) return { by: "step", own: Number(steps[1]), other: Number(steps[2] ?? steps[1]) };
  if (/^-?\d{1,18}$/.test(text ?? "")) return { by: "offset", ns: Number(text) };
  return { by: "origin" };
}

export function alignmentText(alignment: Alignment): string | undefined {
  if (alignment.by === "origin") return undefined;
  if (alignment.by === "offset") return String(Math.round(alignment.ns));
  return alignment.own === alignment.other ? `step.${alignment.own}` : `step.${alignment.own}.${alignment.other}`;
}

/** What is added to the other trace's times; throws a sentence if there is no such step. */
export function shiftOf(alignment: Alignment, own: readonly Step[], other: readonly Step[]): number {
  if (alignment.by === "origin") return 0;
  if (alignment.by === "offset") return alignment.ns;
  return stepOf(own, alignment.own, "the first trace").start - stepOf(other, alignment.other, "the second trace").start;
}

function stepOf(steps: readonly Step[], number: number, where: string): Step {
  const found = steps.find((step) => step.number === number);
  if (found !== undefined) return found;
  const [first, last] = [steps[0], steps.at(-1)];
  if (first === undefined || last === undefined) throw new Error(`${where} has no steps; align by the origins or by an offset`);
  throw new Error(`${where} has no step ${number}; it has the steps ${first.number} to ${last.number}`);
}
