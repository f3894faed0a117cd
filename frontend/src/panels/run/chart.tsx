// All steps of a run in one picture: dragging zooms in, a click on a recorded step opens it.

import type { ComponentChildren } from "preact";
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Span } from "../../draw/span.ts";
import { usePalette } from "../../parts/charts/theme.ts";
import { prepareCanvas } from "../../draw/canvas.ts";
import { useSize } from "../../parts/charts/sized.ts";
import { timeText } from "../../units.ts";
import type { ScaleKind, Steps } from "./curve.ts";
import { scaleOf, stepsAt } from "./curve.ts";
import { paint } from "./painting.ts";

/** Shortest drag in pixels; shorter ones are clicks. */
const CLICK = 4;
/** Shortest span that can be zoomed to, in ns. */
const CLOSEST = 1_000_000;

interface ChartProps {
  steps: readonly Steps[];
  span: Span;
  scale: ScaleKind;
  colours: ReadonlyMap<string, string>;
  height: number;
  tip: (steps: Steps) => ComponentChildren;
  onPick: (steps: Steps) => void;
  /** A span was chosen; null for the whole run. */
  onSpan: (span: Span | null) => void;
}

export function Chart(props: ChartProps) {
  const { steps, span, colours, height } = props;
  const place = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const size = useSize(place);
  const palette = usePalette();
  const [at, setAt] = useState<number | null>(null);
  const scale = useMemo(
    () => scaleOf(steps, span, props.scale, size.width, size.height),
    [steps, span, props.scale, size],
  );
  const { brush, handlers } = usePointer(props, canvas, scale, setAt);
  const pointed = at !== null && at < steps.length ? at : null;
  useLayoutEffect(() => {
    const ctx = canvas.current && prepareCanvas(canvas.current, size);
    if (ctx) paint({ ctx, palette, ...size }, { steps, span, scale, colours, at: pointed, brush });
  }, [steps, span, scale, colours, pointed, brush, palette, size]);
  const shown = pointed === null ? undefined : steps[pointed];
  return (
    <div
      ref={place}
      class="run-canvas"
      style={{ height: `${height}px` }}
      tabIndex={0}
      role="application"
      aria-roledescription="chart"
      aria-label={`Duration of the steps from ${timeText(span.from)} to ${timeText(span.to)}. Arrow keys walk along them.`}
      data-steps={steps.length}
      data-pickable={shown?.traceStart != null}
      onDblClick={() => props.onSpan(null)}
      onKeyDown={(event) => pressed(event, props, pointed, setAt)}
      onBlur={() => setAt(null)}
      {...handlers}
    >
      <canvas ref={canvas} aria-hidden="true" />
      {shown !== undefined && (
        <Tip x={scale.x(shown.start)} y={scale.y(shown.longest)} width={size.width}>{props.tip(shown)}</Tip>
      )}
    </div>
  );
}

/** Beside its mark, on the side where there is room. */
function Tip(props: { x: number; y: number; width: number; children: ComponentChildren }) {
  const { x, y, width } = props;
  const side = x > width / 2 ? { right: `${Math.max(width - x, 0) + 12}px` } : { left: `${Math.max(x, 0) + 12}px` };
  return <div class="run-tip" role="status" style={{ ...side, top: `${Math.max(y - 12, 0)}px` }}>{props.children}</div>;
}

/** Handles the pointer: it shows the nearest steps, a drag zooms, a click picks. */
function usePointer(
  props: ChartProps,
  canvas: { readonly current: HTMLCanvasElement | null },
  scale: ReturnType<typeof scaleOf>,
  setAt: (at: number | null) => void,
) {
  const [drag, setDrag] = useState<{ x: number; begin: number; end: number } | null>(null);
  const near = (event: MouseEvent) => {
    const box = canvas.current?.getBoundingClientRect();
    return stepsAt(props.steps, scale, event.clientX - (box?.left ?? 0), event.clientY - (box?.top ?? 0));
  };
  const timeAt = (event: MouseEvent) => scale.time(event.clientX - (canvas.current?.getBoundingClientRect().left ?? 0));
  const brush = useMemo(() => (drag === null ? null : spanBetween(drag.begin, drag.end)), [drag]);
  const handlers = {
    onPointerDown: (event: PointerEvent) => {
      if (event.button !== 0) return;
      (event.currentTarget as HTMLElement).setPointerCapture(event.pointerId);
      setDrag({ x: event.clientX, begin: timeAt(event), end: timeAt(event) });
    },
    onPointerMove: (event: PointerEvent) => {
      setAt(near(event));
      if (drag !== null) setDrag({ ...drag, end: timeAt(event) });
    },
    onPointerUp: (event: PointerEvent) => {
      if (drag === null) return;
      setDrag(null);
      const picked = near(event);
      const steps = picked === null ? undefined : props.steps[picked];
      if (Math.abs(event.clientX - drag.x) >= CLICK) props.onSpan(spanBetween(drag.begin, timeAt(event)));
      else if (steps !== undefined) props.onPick(steps);
    },
    onPointerLeave: () => setAt(null),
    onPointerCancel: () => setDrag(null),
  };
  return { brush, handlers };
}

function spanBetween(one: number, other: number): Span {
  const [from, to] = one < other ? [one, other] : [other, one];
  return { from, to: Math.max(to, from + CLOSEST) };
}

function pressed(event: KeyboardEvent, props: ChartProps, at: number | null, setAt: (at: number) => void): void {
  const { steps, onPick, onSpan } = props;
  if (event.altKey || event.ctrlKey || event.metaKey || steps.length === 0) return;
  const show = (next: number) => setAt(Math.min(Math.max(next, 0), steps.length - 1));
  const slow = (by: number) => {
    for (let next = (at ?? -1) + by; next >= 0 && next < steps.length; next += by) {
      if (steps[next]?.slow === true) return show(next);
    }
  };
  const shown = at === null ? undefined : steps[at];
  if (event.key === "ArrowRight") show((at ?? -1) + 1);
  else if (event.key === "ArrowLeft") show((at ?? steps.length) - 1);
  else if (event.key === "Home") show(0);
  else if (event.key === "End") show(steps.length - 1);
  else if (event.key === "n") slow(1);
  else if (event.key === "N") slow(-1);
  else if (event.key === "0") onSpan(null);
  else if (event.key === "Enter" && shown !== undefined) onPick(shown);
  else return;
  event.preventDefault();
}
