// How one duration compares with another, in words.

import { fixed, timeText } from "../../../units.ts";

/** Such as `25.000 us longer, 1.26 times as long`; of durations in ns, the second is the basis. */
export function comparedText(duration: number, basis: number): string {
  const by = duration - basis;
  if (Number.isNaN(by)) return "of unknown duration";
  if (by === 0) return "equally long";
  const difference = `${timeText(Math.abs(by))} ${by > 0 ? "longer" : "shorter"}`;
  return basis === 0 ? difference : `${difference}, ${fixed(duration / basis, 2)} times as long`;
}
