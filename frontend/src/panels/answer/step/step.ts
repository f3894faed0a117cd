// What the findings have in common: the scale of their savings, and their names in the URL.

import type { Finding } from "../../../data/advice.ts";

/** The end of the common scale: the largest bound of all savings. */
export function scaleOf(findings: readonly Finding[]): number {
  const named = findings.flatMap(({ saving }) => [saving.estimate_ms, saving.high_ms, saving.upper_ms]);
  return Math.max(0, ...named.filter((value) => value !== null));
}

/** The name in the URL of a finding, which an address may call by its id instead. */
export function addressOf(findings: readonly Finding[], names: readonly string[], word: string | undefined): string | undefined {
  const at = findings.findIndex(({ id }) => id === word);
  return at < 0 ? word : names[at];
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
