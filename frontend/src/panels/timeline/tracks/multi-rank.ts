// Several ranks in one timeline, on a common clock, and which of their collectives are the same.

import type { TraceClock, Data, Job } from "../../../data/api.ts";
import { cells, loadTable } from "../../../parts/data/full-table.ts";
import { MOST_RANKS, firstSource, shownId } from "./sources.ts";
import type { Source } from "./sources.ts";

/** The keys of ranks in the URL, such as `0.3.7`. */
export function parseRankKeys(text: string | undefined): number[] {
  const words = (text ?? "").split(".").filter((word) => /^\d{1,9}$/.test(word));
  return [...new Set(words.map(Number))].slice(0, MOST_RANKS - 1);
}

export function rankKeysText(keys: readonly number[]): string | undefined {
  return keys.length === 0 ? undefined : [...keys].sort((one, other) => one - other).join(".");
}

/** The first trace and the chosen ranks; `left` lists ranks with an unknown clock. */
export function shownRanks(job: Job, trace: string, keys: readonly number[]): { ranks: Source[]; left: string[] } {
  const own = job.ranks.find((rank) => rank.traces.some((one) => one.trace === trace));
  const base = own?.traces.find((one) => one.trace === trace);
  const ranks: Source[] = [firstSource(trace, own?.label)];
  const left: string[] = [];
  for (const rank of job.ranks) {
    if (!keys.includes(rank.key) || rank === own) continue;
    const placed = base === undefined ? null : nearest(rank.traces, base);
    if (placed === null) left.push(rank.label);
    else if (ranks.length < MOST_RANKS) ranks.push({ at: ranks.length, label: rank.label, ...placed });
  }
  return { ranks, left };
}

/** The recording of a rank whose start is closest to another's. */
function nearest(traces: readonly TraceClock[], base: TraceClock): Pick<Source, "trace" | "stretch" | "shift"> | null {
  if (base.shift === null) return null;
  let found: { trace: string; stretch: number; shift: number } | null = null;
  for (const { trace, shift, drift } of traces) {
    if (shift === null) continue;
    const by = (shift - base.shift) / (1 + base.drift);
    if (found === null || Math.abs(by) < Math.abs(found.shift)) {
      found = { trace, stretch: (1 + drift) / (1 + base.drift), shift: by };
    }
  }
  return found;
}

/** Finds the slices of the same collective on different ranks. */
export class SameCollectives {
  readonly #numbers = new Map<number, number>();
  readonly #slices = new Map<number, number[]>();

  /** Loads the collectives of each rank. */
  async learn(data: Data, ranks: readonly Source[]): Promise<void> {
    const [first] = ranks;
    if (first === undefined || ranks.length < 2) return;
    for (const rank of ranks) {
      const where = [{ column: "label", op: "is" as const, value: rank.label }];
      const table = await loadTable(data, first.trace, "arrivals", {}, { columns: ["number", "id"], where });
      this.take(rank, cells({ values: [...(table.columns["id"] ?? [])] }), [...(table.columns["number"] ?? [])]);
    }
  }

  /** The slices of one rank's collectives, with their number in the job. */
  take(rank: Source, ids: readonly unknown[], numbers: readonly unknown[]): void {
    for (const [row, id] of ids.entries()) {
      const number = numbers[row];
      if (typeof id !== "number" || typeof number !== "number") continue;
      this.#numbers.set(shownId(rank, id), number);
      this.#slices.set(number, [...(this.#slices.get(number) ?? []), shownId(rank, id)]);
    }
  }

  /** The slices of the same collective on other ranks. */
  of(id: number): readonly number[] {
    const number = this.#numbers.get(id);
    if (number === undefined) return [];
    return (this.#slices.get(number) ?? []).filter((other) => other !== id);
  }
}
