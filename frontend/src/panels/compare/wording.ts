// What is said of differences, in the words of `selftime compare` (pure).

import type { Unit } from "../../api.ts";
import type { Whole } from "../../parts/whole.ts";
import { number, textAt } from "../../parts/whole.ts";
import { shareText, text, timeText } from "../../units.ts";

/** A difference with its sign. */
export function signed(value: number, unit: Unit = "ns"): string {
  if (value === 0) return text(0, unit);
  return `${value > 0 ? "+" : "−"}${text(Math.abs(value), unit)}`;
}

/** Its share of what was before, with its sign; a dash where nothing was. */
export function signedShare(change: number | null): string {
  if (change === null) return "-";
  return change === 0 ? shareText(0) : `${change > 0 ? "+" : "−"}${shareText(Math.abs(change))}`;
}

export interface StepWords {
  title: string;
  before: string;
  after: string;
  /** Null where no more can be said than that it is chance, or that steps are too few. */
  verdict: "slower" | "faster" | null;
  /** What is said of the difference. */
  said: string;
  /** How surely: the interval and of how many steps. */
  surely: string;
}

/** A row of the table `steps`. */
export function stepWords(steps: Whole, row: number): StepWords {
  const of = (name: string) => number(steps, name, row) ?? 0;
  const time = textAt(steps, "time", row) ?? "";
  const told = textAt(steps, "verdict", row);
  const verdict: StepWords["verdict"] = told === "slower" || told === "faster" ? told : null;
  const words = {
    title: time.charAt(0).toUpperCase() + time.slice(1),
    before: timeText(of("before")),
    after: timeText(of("after")),
    verdict,
  };
  const counts = `${of("steps_before")} and ${of("steps_after")} steps`;
  if (number(steps, "chance", row) === null) {
    return { ...words, said: "too few steps to tell what varies", surely: counts };
  }
  const ends = [of("low"), of("high")].map((end) => (of("difference") > 0 ? end : -end)).toSorted((a, b) => a - b);
  const surely = `${timeText(ends[0] ?? 0)} to ${timeText(ends[1] ?? 0)}, 95 %; ${counts}`;
  if (verdict === null) return { ...words, said: "no difference that is more than chance", surely };
  const change = number(steps, "change", row);
  const share = change === null ? "" : ` (${shareText(Math.abs(change))})`;
  return { ...words, said: `${timeText(Math.abs(of("difference")))}${share} ${verdict}`, surely };
}
