// Draws the selection over the slices: outlines and the selected time span.

import { ROW } from "../tracks/layout.ts";
import type { Line } from "../tracks/layout.ts";
import type { Span } from "../../../draw/span.ts";
import { RULER } from "./viewport.ts";
import type { Area, Flow, Viewport, Slice } from "./viewport.ts";
import type { Brush } from "./strokes.ts";

export interface Selection {
  selected: Slice | null;
  hovered: Slice | null;
  /** What others are compared with. */
  reference: Slice | null;
  /** Slices of the same collective on all shown ranks, as far as loaded. */
  twins: readonly Slice[];
  flows: readonly Flow[];
  area: Area | null;
  /** A gap, a wait or a slow step that the reader went to. */
  moment: Span | null;
  /** Text that names must contain, as typed; empty for none. */
  find: string;
}

export function strokeSelection(brush: Brush, viewport: Viewport, chosen: Selection, lines: readonly Line[]): void {
  const { selected, hovered, area } = chosen;
  if (chosen.moment !== null) strokeMoment(brush, viewport, chosen.moment);
  if (area !== null) strokeArea(brush, viewport, area, lines);
  join(brush, viewport, chosen.twins);
  if (hovered !== null && hovered.id !== selected?.id) outline(brush, viewport, hovered, brush.theme.muted, 1);
  if (chosen.reference !== null) outline(brush, viewport, chosen.reference, brush.theme.accent, 2);
  if (selected !== null) outline(brush, viewport, selected, brush.theme.text, 2);
}

/** Connects the slices of the same collective from rank to rank. */
function join(brush: Brush, viewport: Viewport, twins: readonly Slice[]): void {
  const { context, theme } = brush;
  const boxes = twins.flatMap((slice) => {
    const line = viewport.lineOf(slice.track);
    if (line === undefined || slice.row >= line.rows) return [];
    const y = viewport.rowsTop(line) + 2 + slice.row * ROW;
    return [{ slice, left: viewport.x(slice.start), right: Math.max(viewport.x(slice.end), viewport.x(slice.start) + 2), y }];
  });
  boxes.sort((one, other) => one.y - other.y);
  for (const [at, { slice, left, right, y }] of boxes.entries()) {
    outline(brush, viewport, slice, theme.accent, 2);
    const next = boxes[at + 1];
    if (next === undefined) continue;
    context.beginPath();
    context.moveTo(left, y + ROW - 1);
    context.lineTo(right, y + ROW - 1);
    context.lineTo(next.right, next.y);
    context.lineTo(next.left, next.y);
    context.closePath();
    context.globalAlpha = 0.12;
    context.fillStyle = theme.accent;
    context.fill();
    context.globalAlpha = 0.6;
    context.strokeStyle = theme.accent;
    context.lineWidth = 1;
    context.stroke();
    context.globalAlpha = 1;
  }
}

function outline({ context }: Brush, viewport: Viewport, slice: Slice, colour: string, thick: number): void {
  const line = viewport.lineOf(slice.track);
  if (line === undefined || slice.row >= line.rows) return;
  const left = Math.max(viewport.x(slice.start), -4);
  const right = Math.min(Math.max(viewport.x(slice.end), left + 2), viewport.width + 4);
  if (right < 0 || left > viewport.width) return;
  const y = viewport.rowsTop(line) + 2 + slice.row * ROW;
  context.strokeStyle = colour;
  context.lineWidth = thick;
  context.strokeRect(left - thick / 2, y - thick / 2, right - left + thick - 1, ROW - 1 + thick);
}

function strokeMoment({ context, theme }: Brush, viewport: Viewport, moment: Span): void {
  const left = Math.round(viewport.x(moment.from));
  const right = Math.max(Math.round(viewport.x(moment.to)), left + 1);
  context.fillStyle = theme.found;
  context.globalAlpha = 0.12;
  context.fillRect(left, RULER, right - left, viewport.height);
  context.globalAlpha = 0.7;
  context.fillRect(left, RULER, 1, viewport.height);
  context.fillRect(right - 1, RULER, 1, viewport.height);
  context.globalAlpha = 1;
}

function strokeArea({ context, theme }: Brush, viewport: Viewport, area: Area, lines: readonly Line[]): void {
  const [left, right] = [viewport.x(area.from), viewport.x(area.to)];
  context.globalAlpha = 0.14;
  context.fillStyle = theme.accent;
  for (const line of lines) {
    if (line.kind === "group" || (area.tracks !== null && !area.tracks.includes(line.key))) continue;
    context.fillRect(left, viewport.top(line), right - left, line.height);
  }
  context.globalAlpha = 1;
  context.fillRect(Math.round(left), RULER, 1, viewport.height);
  context.fillRect(Math.round(right) - 1, RULER, 1, viewport.height);
}
