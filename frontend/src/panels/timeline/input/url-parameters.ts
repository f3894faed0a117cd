// Converts areas and time spans to and from URL parameters.

import type { Span } from "../../../draw/span.ts";
import type { Area } from "../drawing/viewport.ts";

/** The option of the view for what the rows of streams are; a report has them by depth alone. */
export function rowsOf(text: string | undefined, isReport: boolean): { lanes?: "name" } {
  return text === "name" && !isReport ? { lanes: "name" } : {};
}

export function areaText(area: Area): string {
  const span = `${Math.round(area.from)}-${Math.round(area.to)}`;
  return area.tracks === null ? span : `${span}:${area.tracks.join(".")}`;
}

/** `from-to` or `from-to:t1.t2`. */
export function readArea(text: string | undefined): Area | null {
  const read = /^(-?\d+)-(-?\d+)(?::([tc\d.]+))?$/.exec(text ?? "");
  if (read === null) return null;
  const [, from, to, tracks] = read;
  return { from: Number(from), to: Number(to), tracks: tracks === undefined ? null : tracks.split(".") };
}

export function readSpan(from: string | undefined, to: string | undefined): Span | null {
  if (from === undefined || to === undefined) return null;
  const span = { from: Number(from), to: Number(to) };
  return span.to > span.from ? span : null;
}
