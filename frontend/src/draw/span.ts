// The visible time span, and how it moves and zooms. Times are ns from the trace's origin.

export interface Span {
  readonly from: number;
  readonly to: number;
}

/** The shortest span, in ns: a pixel of a wide screen is then 0.01 ns. */
export const CLOSEST = 20;

/** The span moved and shortened so that it lies within the limits. */
export function clampSpan(span: Span, limits: Span): Span {
  const length = Math.min(Math.max(span.to - span.from, CLOSEST), limits.to - limits.from);
  const from = Math.min(Math.max(span.from, limits.from), limits.to - length);
  return { from, to: from + length };
}

/** The span scaled by `factor`; the time `at` keeps its position. */
export function zoomSpan(span: Span, at: number, factor: number, limits: Span): Span {
  const length = Math.max((span.to - span.from) * factor, CLOSEST);
  const share = (at - span.from) / (span.to - span.from);
  const from = at - share * length;
  return clampSpan({ from, to: from + length }, limits);
}

export function moveSpan(span: Span, by: number, limits: Span): Span {
  return clampSpan({ from: span.from + by, to: span.to + by }, limits);
}

/** The span with a margin on both sides. */
export function padSpan(span: Span, share: number, limits: Span): Span {
  const room = Math.max((span.to - span.from) * share, CLOSEST);
  return clampSpan({ from: span.from - room, to: span.to + room }, limits);
}

/** A span between two others at `part` of the way; lengths change by equal factors. */
export function interpolateSpan(one: Span, other: Span, part: number): Span {
  if (part >= 1) return other;
  const [short, long] = [one.to - one.from, other.to - other.from];
  const length = short * (long / short) ** part;
  // the middle moves as the length does, so that the target does not leave the picture
  const even = Math.abs(long - short) < 1e-6 * short;
  const share = even ? part : (length - short) / (long - short);
  const middle = (one.from + one.to) / 2 + ((other.from + other.to - one.from - one.to) / 2) * share;
  return { from: middle - length / 2, to: middle + length / 2 };
}

/** A time span from the URL; null if invalid. */
export function spanOf(word: string | undefined): Span | null {
  const [from, to] = (word ?? "").split("-").map(Number);
  if (from === undefined || to === undefined) return null;
  return Number.isFinite(from) && Number.isFinite(to) && to > from ? { from, to } : null;
}

export function wordOf(span: Span | null): string | undefined {
  return span === null ? undefined : `${Math.floor(span.from)}-${Math.ceil(span.to)}`;
}
