// Draws the time ruler, the steps, and the grid lines.

import { ticks } from "../../../draw/ticks.ts";
import { timeText } from "../../../units.ts";
import type { Brush } from "./strokes.ts";
import { ownTime, shownTime } from "../tracks/sources.ts";
import type { Clock, Source } from "../tracks/sources.ts";
import { RULER } from "./viewport.ts";
import type { Area, Viewport, Step } from "./viewport.ts";

const FIRST_CLOCK: Clock = { stretch: 1, shift: 0 };
const TEXT_Y = 15;
const STEPS_Y = 21;
const STEP_HEIGHT = RULER - STEPS_Y - 1;

/** Faint lines behind the tracks, at the marks of the ruler and where steps begin. */
export function strokeGrid(brush: Brush, viewport: Viewport, steps: readonly Step[]): void {
  const { context, theme } = brush;
  context.fillStyle = theme.line;
  for (const { time } of ticks(viewport.span, viewport.width).marks) {
    context.fillRect(Math.round(viewport.x(time)), RULER, 1, viewport.height - RULER);
  }
  const seen = steps.filter((step) => step.end > viewport.span.from && step.start < viewport.span.to);
  if (seen.length * 12 > viewport.width) return;
  context.fillStyle = theme.strong;
  for (const step of seen) {
    context.fillRect(Math.round(viewport.x(step.start)), RULER, 1, viewport.height - RULER);
  }
}

export function strokeRuler(
  brush: Brush,
  viewport: Viewport,
  steps: readonly Step[],
  area: Area | null,
): void {
  const { context, theme } = brush;
  context.fillStyle = theme.surface;
  context.fillRect(0, 0, viewport.width, RULER);
  if (area !== null) strokeArea(brush, viewport, area);
  strokeTicks(brush, viewport, 0, FIRST_CLOCK);
  strokeSteps(brush, viewport, steps, 0);
  context.fillStyle = theme.strong;
  context.fillRect(0, RULER - 1, viewport.width, 1);
}

/** Draws the times and steps of a source by its own clock, from a height of the canvas. */
export function strokeAxis(brush: Brush, viewport: Viewport, source: Source, top: number): void {
  brush.context.fillStyle = brush.theme.surface;
  brush.context.fillRect(0, top, viewport.width, RULER);
  strokeTicks(brush, viewport, top, source);
  strokeSteps(brush, viewport, source.steps ?? [], top);
}

function strokeTicks({ context, theme }: Brush, viewport: Viewport, top: number, clock: Clock): void {
  const span = { from: ownTime(clock, viewport.span.from), to: ownTime(clock, viewport.span.to) };
  const { base, marks } = ticks(span, viewport.width);
  context.font = `11px ${theme.font}`;
  let free = 0;
  if (base) {
    context.fillStyle = theme.text;
    context.fillText(base, 6, top + TEXT_Y);
    free = 12 + context.measureText(base).width;
  }
  for (const { time, text } of marks) {
    const x = Math.round(viewport.x(shownTime(clock, time)));
    context.fillStyle = theme.strong;
    context.fillRect(x, top + TEXT_Y - 11, 1, 14);
    if (x < free || x + 4 + context.measureText(text).width > viewport.width) continue;
    context.fillStyle = theme.muted;
    context.fillText(text, x + 4, top + TEXT_Y);
  }
}

function strokeSteps(brush: Brush, viewport: Viewport, steps: readonly Step[], top: number): void {
  let reached = -1;
  for (const step of steps) {
    const left = Math.max(viewport.x(step.start), 0);
    const right = Math.min(viewport.x(step.end), viewport.width);
    if (right <= left || right < reached + 1) continue;
    reached = right;
    strokeStep(brush, step, { left, right, top, begins: viewport.x(step.start) >= 0 });
  }
  // however narrow: among many steps a slow one is what is looked for
  for (const step of steps) {
    if (step.excess === undefined) continue;
    const left = Math.round(viewport.x(step.start));
    const width = Math.max(Math.round(viewport.x(step.end)) - left, 2);
    if (left > viewport.width || left + width < 0) continue;
    brush.context.fillStyle = brush.theme.found;
    brush.context.fillRect(left, top + RULER - 4, width, 3);
  }
}

function strokeStep({ context, theme }: Brush, step: Step, at: { left: number; right: number; top: number; begins: boolean }): void {
  const { left, right, top, begins } = at;
  context.fillStyle = step.number % 2 === 0 ? theme.sunken : theme.band;
  context.fillRect(left, top + STEPS_Y, right - left, STEP_HEIGHT);
  context.fillStyle = theme.strong;
  if (begins) context.fillRect(Math.round(left), top + STEPS_Y, 1, STEP_HEIGHT);
  const number = `${step.number}`;
  const slow = `step ${number}, ${step.excess === undefined ? "" : timeText(step.excess)} longer`;
  const texts = [...(step.excess === undefined ? [] : [slow]), `step ${number}`, number];
  const text = texts.find((one) => right - left >= one.length * 6 + 8);
  if (text === undefined) return;
  context.fillStyle = theme.text;
  context.fillText(text, left + 5, top + RULER - 7);
}

function strokeArea({ context, theme }: Brush, viewport: Viewport, area: Area): void {
  context.fillStyle = theme.sunken;
  const left = viewport.x(area.from);
  context.fillRect(left, 0, viewport.x(area.to) - left, RULER);
}
