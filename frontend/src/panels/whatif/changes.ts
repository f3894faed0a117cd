// The changes that are asked for, as the page's address holds them.

import type { AskedChange, ChangeKind } from "../../data/api.ts";
import { shareText } from "../../units.ts";

/** Names that stand for a class of time, with what each holds. */
export const CLASSES: readonly (readonly [string, string])[] = [
  ["syncs", "Waits of the host for a device"],
  ["copies", "Copies between host and device"],
  ["launches", "Launches of device work"],
  ["data", "The data loader"],
  ["garbage_collection", "Garbage collection"],
  ["communication", "Communication"],
];

const KINDS: readonly ChangeKind[] = ["scale", "remove", "hide"];

/** The changes in the address's parameter; what is no change is left out. */
export function parseChanges(text: string | undefined): AskedChange[] {
  let found: unknown;
  try {
    found = JSON.parse(text ?? "[]");
  } catch {
    return [];
  }
  return Array.isArray(found) ? found.filter(isChange) : [];
}

function isChange(value: unknown): value is AskedChange {
  if (typeof value !== "object" || value === null) return false;
  const { change, pattern, kept_share: kept } = value as Partial<AskedChange>;
  return (
    KINDS.some((kind) => kind === change) &&
    typeof pattern === "string" && pattern !== "" &&
    typeof kept === "number" && kept >= 0 && kept <= 1
  );
}

/** The changes with one more; an equal kind and pattern is replaced. */
export function withChange(changes: readonly AskedChange[], added: AskedChange): AskedChange[] {
  return [...changes.filter((known) => !isSame(known, added)), added];
}

export function withoutChange(changes: readonly AskedChange[], removed: AskedChange): AskedChange[] {
  return changes.filter((known) => !isSame(known, removed));
}

function isSame(one: AskedChange, other: AskedChange): boolean {
  return one.change === other.change && one.pattern === other.pattern;
}

export function changeText({ change, pattern, kept_share: kept }: AskedChange): string {
  if (change === "scale") return `Scale ${pattern} to ${shareText(kept)}`;
  return `${change === "remove" ? "Remove" : "Hide"} ${pattern}`;
}
