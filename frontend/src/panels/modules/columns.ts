// The columns of figures beside a tree of modules or of kinds of work (pure).

import type { Unit } from "../../data/api.ts";
import type { FullTable } from "../../parts/data/full-table.ts";

export interface Head {
  name: string;
  title: string;
  doc: string;
  unit: Unit;
}

export const PASSES = ["forward", "backward", "recompute"] as const;

/** The columns that say something: not all unknown or 0, and passes only where there are several. */
export function headsThatSay(table: FullTable, all: readonly Head[], passTime: string, always: readonly string[] = []): Head[] {
  const says = (name: string) => (table.columns[name] ?? []).some((value) => value !== null && value !== 0);
  const oneWay = !says(`backward_${passTime}`) && !says(`recompute_${passTime}`);
  return all.filter(({ name }) => always.includes(name) || (says(name) && !(oneWay && name === `forward_${passTime}`)));
}
