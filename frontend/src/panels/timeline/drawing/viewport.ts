// The viewport of the canvas, and types of the selection.

import type { Span } from "../../../draw/span.ts";
import { clampSpan } from "../../../draw/span.ts";
import type { Layout, Line } from "../tracks/layout.ts";

/** A slice that is selected or under the pointer. */
export interface Slice {
  /** -1 where several are merged. */
  id: number;
  name: string;
  category: string;
  track: number;
  row: number;
  start: number;
  end: number;
  /** NaN where it is unknown. */
  self: number;
  count: number;
}

export interface Flow {
  name: string;
  id: number;
  start: number;
  track: number;
  row: number;
  to: number;
  toTime: number;
  toTrack: number;
  toRow: number;
}

/** A selected time span with the keys of its tracks; null for all tracks. */
export interface Area extends Span {
  tracks: readonly string[] | null;
}

export interface Step {
  number: number;
  start: number;
  end: number;
  /** Its time above the median, if it is far longer than the others. */
  excess?: number;
}

/** Converts between times and canvas positions. */
export class Viewport {
  span: Span;
  limits: Span;
  layout: Layout = { lines: [], height: 0 };
  /** How far the tracks are scrolled, in CSS pixels. */
  scroll = 0;
  width = 1;
  height = 1;

  constructor(limits: Span) {
    this.limits = limits;
    this.span = limits;
  }

  get scale(): number {
    return this.width / (this.span.to - this.span.from);
  }

  x(time: number): number {
    return (time - this.span.from) * this.scale;
  }

  time(x: number): number {
    return this.span.from + x / this.scale;
  }

  /** How many ns a CSS pixel is. */
  get pixel(): number {
    return 1 / this.scale;
  }

  scrollTo(scroll: number): void {
    const most = Math.max(0, this.layout.height - (this.height - RULER));
    this.scroll = Math.min(Math.max(scroll, 0), most);
  }

  look(span: Span): void {
    this.span = clampSpan(span, this.limits);
  }

  /** Height of the pinned lines: they do not scroll, as far as they leave room for others. */
  get fixed(): number {
    const room = (this.height - RULER) * FIXED_SHARE;
    let reached = 0;
    for (const line of this.layout.lines) {
      if (line.group.pinned !== true || line.y + line.height > room) break;
      reached = line.y + line.height;
    }
    return reached;
  }

  /** The line at a height of the canvas. */
  lineAt(y: number): Line | undefined {
    if (y < RULER) return undefined;
    const inside = y - RULER < this.fixed ? y - RULER : y - RULER + this.scroll;
    return this.layout.lines.find((line) => inside >= line.y && inside < line.y + line.height);
  }

  /** Where a line begins on the canvas. */
  top(line: Line): number {
    return line.y < this.fixed ? line.y + RULER : line.y - this.scroll + RULER;
  }

  /** Where the first row of a line begins on the canvas. */
  rowsTop(line: Line): number {
    return this.top(line) + line.head;
  }

  /** The height of the canvas above which a line cannot be seen. */
  ceiling(line: Line): number {
    return line.y < this.fixed ? RULER : RULER + this.fixed;
  }

  /** Lines that are in the picture, or at most so many pixels beside it. */
  seen(margin = 0): Line[] {
    return this.layout.lines.filter((line) => {
      const top = this.top(line);
      return top + line.height > this.ceiling(line) - margin && top < this.height + margin;
    });
  }

  /** Keys of the tracks whose lines lie between two heights of the canvas. */
  tracksBetween(low: number, high: number): string[] {
    return this.layout.lines
      .filter((line) => line.track !== null && this.top(line) < high && this.top(line) + line.height > Math.max(low, this.ceiling(line)))
      .map((line) => line.key);
  }

  lineOf(track: number): Line | undefined {
    return this.layout.lines.find((line) => line.track !== null && line.track.id === track && track >= 0);
  }
}

/** The most that pinned lines take of the height. */
const FIXED_SHARE = 0.6;
/** Height of the time ruler with the steps below it. */
export const RULER = 40;

/** The step after or before that in the middle of a stretch; that one itself unless it fills it. */
export function stepBeside(steps: readonly Step[], span: Span, by: 1 | -1): Step | undefined {
  const middle = (span.from + span.to) / 2;
  const found = steps.findIndex((step) => step.end > middle);
  const at = found < 0 ? steps.length : found;
  const here = steps[at];
  if (by < 0 || here === undefined) return steps[at + by];
  const long = here.end - here.start;
  return Math.abs(span.to - span.from - long) < 0.2 * long ? steps[at + by] : here;
}
