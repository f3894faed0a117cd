// What of a number is not highlighted, in words.

import { countText, timeText } from "../../../units.ts";
import type { Highlighted } from "./places.ts";

/** Null if all slices and stretches are shown, and all are known. */
export function partText({ number }: Pick<Highlighted, "number">, isReport: boolean): string | null {
  const { slices, stretches, slice_count: all, stretch_count: gaps } = number;
  const parts: string[] = [];
  if (slices.rows < all) parts.push(`the ${countText(slices.rows)} longest of ${countText(all)} slices`);
  if (stretches.rows < gaps) parts.push(`the ${countText(stretches.rows)} longest of ${countText(gaps)} stretches`);
  const told: string[] = [];
  if (parts.length > 0) {
    const why = isReport ? "this report carries" : "highlighted are";
    told.push(`${capital(why)} ${parts.join(" and ")}${isReport ? "; `selftime serve` shows all" : ""}`);
  }
  if (gaps > 0) told.push(`${timeText(number.stretch_time)} in all counted steps are of no slice: bands show them`);
  if (number.are_examples) told.push("The rule names no other slices");
  return told.length === 0 ? null : told.join(". ");
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
