// A stretch of time that is looked at, and how it moves. Times are ns from the trace's origin.

export interface Span {
  readonly from: number;
  readonly to: number;
}

/** No closer: a pixel of a wide screen is then a hundredth of a ns. */
export const CLOSEST = 20;

/** The stretch moved and shrunk so that it lies within the limits. */
export function within(span: Span, limits: Span): Span {
  const length = Math.min(Math.max(span.to - span.from, CLOSEST), limits.to - limits.from);
  const from = Math.min(Math.max(span.from, limits.from), limits.to - length);
  return { from, to: from + length };
}

/** `factor` times as long; the instant `at` stays where it is. */
export function zoomed(span: Span, at: number, factor: number, limits: Span): Span {
  const length = Math.max((span.to - span.from) * factor, CLOSEST);
  const share = (at - span.from) / (span.to - span.from);
  const from = at - share * length;
  return within({ from, to: from + length }, limits);
}

export function moved(span: Span, by: number, limits: Span): Span {
  return within({ from: span.from + by, to: span.to + by }, limits);
}

/** The stretch with some room on both sides. */
export function around(span: Span, share: number, limits: Span): Span {
  const room = Math.max((span.to - span.from) * share, CLOSEST);
  return within({ from: span.from - room, to: span.to + room }, limits);
}

/** The way from one stretch to another, `part` of it done: lengths change by equal factors. */
export function between(one: Span, other: Span, part: number): Span {
  if (part >= 1) return other;
  const [short, long] = [one.to - one.from, other.to - other.from];
  const length = short * (long / short) ** part;
  // the middle moves as the length does, so that the target does not leave the picture
  const even = Math.abs(long - short) < 1e-6 * short;
  const share = even ? part : (length - short) / (long - short);
  const middle = (one.from + one.to) / 2 + ((other.from + other.to - one.from - one.to) / 2) * share;
  return { from: middle - length / 2, to: middle + length / 2 };
}
