// A strip of the whole trace that marks the visible span.

import { useEffect, useRef } from "preact/hooks";
import type { Page } from "../../../data/api.ts";
import { fitCanvas } from "../../../draw/canvas.ts";
import { moveSpan, clampSpan } from "../../../draw/span.ts";
import type { Span } from "../../../draw/span.ts";
import { ticks } from "../../../draw/ticks.ts";
import { useTheme } from "../../../parts/charts/theme.ts";
import type { TimelineController } from "../input/controller.ts";
import { COUNTER_COLUMNS, SLICE_COLUMNS, loadAllRows } from "../tiles/store.ts";
import { partsOf, samplesOf } from "../tiles/tiles.ts";
import type { Place } from "../tiles/tiles.ts";
import { mainThread } from "../tracks/tracks.ts";
import type { Group } from "../tracks/tracks.ts";

const PIXELS = 600;
const HEIGHT = 34;
const BARS_Y = 14;
/** Narrowest mark of the visible span, in pixels. */
const LEAST = 6;
/** A tile that contains the whole trace. */
const ALL: Place = { level: 50, number: 0 };

/** Stretches of the trace, and how much of each was busy. */
interface Strip {
  spans: { from: number; to: number; share: number }[];
  what: "kernel" | "operator";
}

export function Overview(props: { controller: TimelineController | null; groups: readonly Group[] }) {
  const { controller, groups } = props;
  const canvas = useRef<HTMLCanvasElement>(null);
  const theme = useTheme();
  useEffect(() => {
    if (controller === null || canvas.current === null) return undefined;
    const { current } = canvas;
    let strip: Strip = { spans: [], what: "kernel" };
    stripOf(controller, groups).then(
      (found) => {
        strip = found;
        controller.picture.redraw();
      },
      () => undefined, // the strip then shows ruler and window alone
    );
    const drawn = controller.picture.follow(() => draw(current, controller, strip));
    const held = take(current, controller);
    return () => {
      drawn();
      held();
    };
  }, [controller]);
  useEffect(() => controller?.picture.redraw(), [controller, theme]);
  return (
    <div class="timeline-overview">
      <span class="timeline-corner">overview</span>
      <canvas ref={canvas} role="img" aria-label="The whole trace and the part that is shown; drag to move it" />
    </div>
  );
}

async function stripOf(controller: TimelineController, groups: readonly Group[]): Promise<Strip> {
  const tracks = groups.flatMap((group) => group.tracks);
  const { limits } = controller.picture.viewport;
  const span = { start: limits.from, end: limits.to || 1, pixels: PIXELS };
  const busy = tracks.find((track) => track.kind === "utilization");
  const ask = (options: Record<string, string | number>, columns: readonly string[]) =>
    loadAllRows((...words) => controller.data.page(controller.trace, "timeline", ...words), { ...span, ...options }, { columns });
  if (busy !== undefined) {
    const page = await ask({ tracks: "counters" }, COUNTER_COLUMNS);
    return { spans: shares(page, busy.title), what: "kernel" };
  }
  const main = mainThread(tracks) ?? tracks.find((track) => track.id >= 0);
  if (main === undefined) return { spans: [], what: "operator" };
  const page = await ask({ tracks: String(main.id), depth: 2 }, SLICE_COLUMNS);
  const lanes = partsOf(page, ALL, controller.picture.names).get(main.id)?.lanes ?? [];
  const lane = lanes.at(-1);
  const spans = Array.from(lane?.start ?? [], (from, at) => ({
    from,
    to: lane?.end[at] ?? from,
    share: lane?.filled[at] ?? 0,
  }));
  return { spans, what: "operator" };
}

function shares(page: Page, title: string): Strip["spans"] {
  const samples = samplesOf(page, null).get(title);
  return Array.from(samples?.start ?? [], (from, at) => ({
    from,
    to: samples?.end[at] ?? from,
    share: (samples?.mean[at] ?? 0) / 100,
  }));
}

function draw(canvas: HTMLCanvasElement, controller: TimelineController, strip: Strip): void {
  const { viewport, theme, steps } = controller.picture;
  const width = canvas.clientWidth;
  fitCanvas(canvas, width, HEIGHT);
  const context = canvas.getContext("2d", { alpha: false });
  if (context === null) return;
  const { limits } = viewport;
  const scale = width / (limits.to - limits.from);
  const x = (time: number) => (time - limits.from) * scale;
  context.fillStyle = theme.surface;
  context.fillRect(0, 0, width, HEIGHT);
  const colours = theme.curve[strip.what === "kernel" ? "utilization" : "queue"];
  context.fillStyle = colours?.line ?? theme.muted;
  for (const { from, to, share } of strip.spans) {
    const high = Math.max(share, 0) * (HEIGHT - BARS_Y - 1);
    context.fillRect(x(from), HEIGHT - high, Math.max(x(to) - x(from), 1), high);
  }
  context.font = `10px ${theme.font}`;
  for (const { time, text } of ticks(limits, width, 110).marks) {
    context.fillStyle = theme.strong;
    context.fillRect(Math.round(x(time)), 0, 1, BARS_Y - 2);
    if (x(time) + 4 + context.measureText(text).width > width) continue;
    context.fillStyle = theme.muted;
    context.fillText(text, Math.round(x(time)) + 4, 10);
  }
  if (steps.length * 4 < width) {
    context.fillStyle = theme.strong;
    for (const step of steps) context.fillRect(Math.round(x(step.start)), BARS_Y, 1, HEIGHT);
  }
  context.fillStyle = theme.found;
  for (const { excess, start, end } of steps) {
    if (excess !== undefined) context.fillRect(Math.round(x(start)), BARS_Y - 3, Math.max(x(end) - x(start), 2), 2);
  }
  frame(context, controller, width, x);
}

/** What is not shown is veiled; what is has an edge. */
function frame(
  context: CanvasRenderingContext2D,
  controller: TimelineController,
  width: number,
  x: (time: number) => number,
): void {
  const { viewport, theme, chosen } = controller.picture;
  const { left, right } = handles(viewport.span, x, width);
  context.globalAlpha = 0.62;
  context.fillStyle = theme.sunken;
  context.fillRect(0, 0, left, HEIGHT);
  context.fillRect(right, 0, width - right, HEIGHT);
  context.globalAlpha = 1;
  context.fillStyle = theme.accent;
  context.fillRect(left, 0, 2, HEIGHT);
  context.fillRect(right - 2, 0, 2, HEIGHT);
  context.fillRect(left, 0, right - left, 2);
  if (chosen.selected === null) return;
  const at = x(chosen.selected.start);
  context.fillStyle = theme.text;
  context.beginPath();
  context.moveTo(at - 4, HEIGHT);
  context.lineTo(at + 4, HEIGHT);
  context.lineTo(at, HEIGHT - 6);
  context.fill();
}

function handles(span: Span, x: (time: number) => number, width: number) {
  const [exact, end] = [x(span.from), x(span.to)];
  const long = Math.max(end - exact, LEAST);
  const left = Math.min(Math.max((exact + end) / 2 - long / 2, 0), width - long);
  return { left, right: left + long };
}

/** The pointer moves the window, or draws a new one beside it. */
function take(canvas: HTMLCanvasElement, controller: TimelineController): () => void {
  const stop = new AbortController();
  const on = { signal: stop.signal };
  const { viewport, motion } = controller.picture;
  let held: { time: number; span: Span | null } | null = null;
  const timeAt = (event: PointerEvent) => {
    const { limits } = viewport;
    return limits.from + (event.offsetX / canvas.clientWidth) * (limits.to - limits.from);
  };
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    const time = timeAt(event);
    const room = ((viewport.limits.to - viewport.limits.from) / canvas.clientWidth) * LEAST;
    const { from, to } = viewport.span;
    const isInside = time >= from - room && time <= to + room;
    const isAll = from <= viewport.limits.from && to >= viewport.limits.to;
    held = { time, span: isInside && !isAll ? viewport.span : null };
  }, on);
  canvas.addEventListener("pointermove", (event) => {
    if (held === null) return;
    const time = timeAt(event);
    if (held.span !== null) viewport.look(moveSpan(held.span, time - held.time, viewport.limits));
    else viewport.look(clampSpan({ from: Math.min(held.time, time), to: Math.max(held.time, time) }, viewport.limits));
    controller.picture.redraw();
  }, on);
  canvas.addEventListener("pointerup", () => (held = null), on);
  canvas.addEventListener("dblclick", () => controller.whole(), on);
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    motion.zoom((viewport.span.from + viewport.span.to) / 2, Math.exp(event.deltaY * 0.002));
    controller.picture.redraw();
  }, { ...on, passive: false });
  return () => stop.abort();
}
