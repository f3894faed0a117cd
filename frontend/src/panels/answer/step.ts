// What a saving means for the step, in numbers to draw.

import type { Advice, Finding, Saving } from "../../api.ts";

export interface WhatIf {
  /** The step as it is, without what recording it costs; in ms. */
  before: number;
  after: number;
  /** The shortest and the longest that it may come to be. */
  shortest: number;
  longest: number;
}

/** The step that a promise was made on: its saving and speed-up tell. */
export function stepOf(estimate: number | null, speedup: number | null): number | null {
  if (estimate === null || speedup === null || speedup <= 1) return null;
  return (estimate * speedup) / (speedup - 1);
}

/** The step with and without what one finding saves; null where nobody knows. */
export function whatIf(saving: Saving, step: Advice["step"]): WhatIf | null {
  const { estimate_ms: estimate, low_ms: low, high_ms: high, speedup } = saving;
  const before = stepOf(estimate, speedup) ?? step?.device_ms ?? step?.host_ms ?? null;
  if (estimate === null || before === null || estimate > before) return null;
  return {
    before,
    after: before - estimate,
    shortest: Math.max(0, before - (high ?? estimate)),
    longest: before - (low ?? estimate),
  };
}

/** The largest number that any saving names: where the common scale of their bars ends. */
export function scaleOf(findings: readonly Finding[]): number {
  const named = findings.flatMap(({ saving }) => [saving.estimate_ms, saving.high_ms, saving.upper_ms]);
  return Math.max(0, ...named.filter((value) => value !== null));
}

/** How a finding is named in the address; equal ones are told apart by their number. */
export function addresses(findings: readonly Finding[]): string[] {
  const seen = new Map<string, number>();
  return findings.map(({ rule, where }) => {
    const name = [rule, where.file ?? "", where.line ?? ""].join(":");
    const count = (seen.get(name) ?? 0) + 1;
    seen.set(name, count);
    return count === 1 ? name : `${name}:${count}`;
  });
}
