// Which bands of the stack are hidden, as a word of the address, and the curve of the others (pure).

import type { Band } from "./bands.ts";
import { edgesOf } from "./bands.ts";
import type { Curve } from "./curves.ts";

/** The labels of bands that are not shown. */
export type Hidden = ReadonlySet<string>;

export function hiddenOf(word: string | undefined): Hidden {
  try {
    const labels: unknown = JSON.parse(word ?? "[]");
    return new Set(Array.isArray(labels) ? labels.filter((label) => typeof label === "string") : []);
  } catch {
    return new Set(); // written by hand, and not to be read: every band is shown
  }
}

export function wordOfHidden(hidden: Hidden): string | undefined {
  return hidden.size === 0 ? undefined : JSON.stringify([...hidden].sort());
}

/** Hides a band, or shows it again. */
export function toggled(hidden: Hidden, label: string): Hidden {
  return hidden.has(label) ? new Set([...hidden].filter((one) => one !== label)) : new Set([...hidden, label]);
}

/** Hides all bands but one; all are shown again where it stood alone. */
export function alone(hidden: Hidden, label: string, bands: readonly Band[]): Hidden {
  const others = bands.map((band) => band.label).filter((one) => one !== label);
  const isAlone = !hidden.has(label) && others.every((one) => hidden.has(one));
  return new Set(isAlone ? [] : others);
}

export interface Part {
  curve: Curve;
  bands: readonly Band[] | null;
}

/** The bands that are shown, and the curve of what they hold together. */
export function shownPart(curve: Curve, bands: readonly Band[] | null, hidden: Hidden): Part {
  const shown = bands?.filter((band) => !hidden.has(band.label)) ?? [];
  if (bands === null || shown.length === bands.length) return { curve, bands };
  const { times, upper } = edgesOf(shown);
  const allocated = upper.at(-1) ?? [];
  const start = { time: curve.peak.time, allocated: 0 };
  const peak = allocated.reduce((most, size, at) => (size > most.allocated ? { time: times[at] ?? 0, allocated: size } : most), start);
  return { curve: { ...curve, times, allocated, reserved: null, capacity: null, peak, isPart: true }, bands: shown };
}
