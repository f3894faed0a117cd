// The step time with and without savings, for drawing.

import type { Advice, Finding, Saving } from "../../../data/api.ts";

export interface WhatIf {
  /** The current step time without recording overhead, in ms. */
  before: number;
  after: number;
  /** Lower and upper bound of the new step time, in ms. */
  shortest: number;
  longest: number;
}

/** The step time that a saving refers to, from saving and speed-up. */
export function stepOf(estimate: number | null, speedup: number | null): number | null {
  if (estimate === null || speedup === null || speedup <= 1) return null;
  return (estimate * speedup) / (speedup - 1);
}

/** The step with and without a finding's saving; null if unknown. */
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

/** The end of the common scale: the largest bound of all savings. */
export function scaleOf(findings: readonly Finding[]): number {
  const named = findings.flatMap(({ saving }) => [saving.estimate_ms, saving.high_ms, saving.upper_ms]);
  return Math.max(0, ...named.filter((value) => value !== null));
}

/** The name of each finding in the URL; equal names get a number. */
export function findingAddresses(findings: readonly Finding[]): string[] {
  const seen = new Map<string, number>();
  return findings.map(({ rule, where }) => {
    const name = [rule, where.file ?? "", where.line ?? ""].join(":");
    const count = (seen.get(name) ?? 0) + 1;
    seen.set(name, count);
    return count === 1 ? name : `${name}:${count}`;
  });
}
