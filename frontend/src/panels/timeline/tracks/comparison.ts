// How one duration compares with another, in words.

import { fixed, timeText } from "../../../units.ts";

/** Such as `25.000 us longer than aten::mm, 100.000 us: 1.25 times as long`; of durations in ns. */
export function comparedText(duration: number, { name, duration: basis }: { name: string; duration: number }): string {
  const by = duration - basis;
  const other = `${name}, ${timeText(basis)}`;
  if (by === 0) return `as long as ${other}`;
  const difference = `${timeText(Math.abs(by))} ${by > 0 ? "longer" : "shorter"} than ${other}`;
  return basis === 0 ? difference : `${difference}: ${fixed(duration / basis, 2)} times as long`;
}
