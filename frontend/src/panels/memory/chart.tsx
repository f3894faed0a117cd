// The memory curve of a device: dragging selects a time span, a click a time, the wheel zooms.

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Span } from "../../draw/span.ts";
import { moveSpan, zoomSpan } from "../../draw/span.ts";
import { usePalette } from "../../parts/charts/theme.ts";
import { prepareCanvas } from "../../draw/canvas.ts";
import { useSize } from "../../parts/charts/sized.ts";
import type { Band } from "./bands.ts";
import { bandAt, edgesOf } from "./bands.ts";
import type { Curve } from "./curves.ts";
import { pointAt, snapped } from "./curves.ts";
import type { Hidden } from "./hiding.ts";
import { shownPart } from "./hiding.ts";
import { Caption, told } from "./caption.tsx";
import { LEFT, paint, scaleOf } from "./painting.ts";

/** Shortest drag in pixels; shorter ones are clicks. */
const CLICK = 4;
/** Into so many intervals the curve in sight is divided at the least, each with some of its records. */
const INTERVALS = 160;
/** Pixels within which a record is meant at the least. */
const LEAST = 3;
/** Pixels around the mark of the peak within which a click is one on the peak. */
const NEAR = 8;

export interface ChartProps {
  /** The curve of all bands, of which some may be hidden. */
  curve: Curve;
  bands: readonly Band[] | null;
  /** The band that is pointed at, here or in the legend. */
  lit: Band | null;
  /** The complete time span. */
  limits: Span;
  span: Span;
  brush: Span | null;
  at: number | null;
  /** The time that is compared with. */
  pin: number | null;
  chosen: boolean;
  height: number;
  hidden: Hidden;
  onSpan: (span: Span) => void;
  onBrush: (brush: Span | null) => void;
  onPoint: (time: number) => void;
  onLight: (band: Band | null) => void;
}

export function Chart(whole: ChartProps) {
  const part = useMemo(() => shownPart(whole.curve, whole.bands, whole.hidden), [whole.curve, whole.bands, whole.hidden]);
  const props = { ...whole, ...part };
  const { curve, bands, lit, span, brush, at, pin, chosen, height } = props;
  const place = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const size = useSize(place);
  const palette = usePalette();
  const placeOf = (event: MouseEvent): Place => {
    const area = canvas.current?.getBoundingClientRect();
    const scale = scaleOf({ curve, span }, size.width, size.height);
    const [x, y] = [event.clientX - (area?.left ?? 0), event.clientY - (area?.top ?? 0)];
    const { time, allocated } = curve.peak;
    const near = Math.hypot(scale.x(time) - x, scale.y(allocated) - y) <= NEAR;
    const reach = Math.max((span.to - span.from) / INTERVALS, scale.time(x + LEAST) - scale.time(x));
    return { time: snapped(curve.times, scale.time(x), reach), size: scale.size(y), near };
  };
  const { pointer, dragged, handlers } = useDrag(props, placeOf);
  const stacked = useMemo(() => bands && { bands, edges: edgesOf(bands), lit }, [bands, lit]);
  useLayoutEffect(() => {
    const ctx = canvas.current && prepareCanvas(canvas.current, size);
    if (ctx) paint({ ctx, palette, ...size }, { curve, stacked, span, brush: dragged ?? brush, at, pin, pointer, chosen });
  }, [curve, stacked, span, brush, at, pin, pointer, dragged, chosen, palette, size]);
  useWheel(canvas, props, size.width, size.height);
  return (
    <figure class={chosen ? "memory-chart chosen" : "memory-chart"}>
      <Caption curve={curve} at={pointer ?? at} lit={lit} onPeak={() => props.onPoint(curve.peak.time)} />
      <div
        ref={place}
        class="memory-canvas"
        style={{ height: `${height}px` }}
        tabIndex={0}
        role="application"
        aria-roledescription="curve"
        aria-label={`${curve.title}: ${told(curve, at ?? curve.peak.time)}`}
        onDblClick={() => props.onSpan(props.limits)}
        onKeyDown={(event) => pressed(event, props)}
        {...handlers}
      >
        <canvas ref={canvas} aria-hidden="true" />
      </div>
    </figure>
  );
}

/** Where the pointer is. */
interface Place {
  time: number;
  size: number;
  /** Whether it is at the mark of the peak. */
  near: boolean;
}

/** Handles the pointer: a drag selects a time span, a click a time, or the peak. */
function useDrag(props: ChartProps, placeOf: (event: MouseEvent) => Place) {
  const [pointer, setPointer] = useState<number | null>(null);
  const [drag, setDrag] = useState<{ begin: number; x: number; end: number } | null>(null);
  const down = (event: PointerEvent) => {
    if (event.button !== 0) return;
    (event.currentTarget as HTMLElement).setPointerCapture(event.pointerId);
    const { time } = placeOf(event);
    setDrag({ begin: time, x: event.clientX, end: time });
  };
  const move = (event: PointerEvent) => {
    const { time, size } = placeOf(event);
    setPointer(time);
    props.onLight(props.bands && bandAt(props.bands, time, size));
    if (drag !== null) setDrag({ ...drag, end: time });
  };
  const up = (event: PointerEvent) => {
    if (drag === null) return;
    setDrag(null);
    const { time, near } = placeOf(event);
    if (Math.abs(event.clientX - drag.x) < CLICK) props.onPoint(near ? props.curve.peak.time : drag.begin);
    else props.onBrush(ordered(drag.begin, time));
  };
  const left = () => {
    setPointer(null);
    props.onLight(null);
  };
  const dragged = useMemo(() => (drag === null ? null : ordered(drag.begin, drag.end)), [drag]);
  const handlers = {
    onPointerDown: down,
    onPointerMove: move,
    onPointerUp: up,
    onPointerLeave: left,
    onPointerCancel: () => setDrag(null),
  };
  return { pointer, dragged, handlers };
}

function ordered(one: number, other: number): Span {
  const [from, to] = one < other ? [one, other] : [other, one];
  return { from, to: Math.max(to, from + 1) };
}

/** Handles the wheel: zooms at the pointer; with Shift or sideways it pans. */
function useWheel(canvas: { readonly current: HTMLCanvasElement | null }, props: ChartProps, width: number, height: number): void {
  const latest = useRef(props);
  latest.current = props;
  useEffect(() => {
    const shown = canvas.current;
    const turned = (event: WheelEvent) => {
      const { curve, span, limits, onSpan } = latest.current;
      // Without Ctrl a wheel over the curve scrolls the page: the tables are below.
      const sideways = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
      if (!event.ctrlKey && !event.metaKey && !sideways) return;
      event.preventDefault();
      const length = span.to - span.from;
      if (sideways) return onSpan(moveSpan(span, ((event.deltaX || event.deltaY) / (width - LEFT)) * length, limits));
      const left = shown?.getBoundingClientRect().left ?? 0;
      const at = scaleOf({ curve, span }, width, height).time(event.clientX - left);
      onSpan(zoomSpan(span, at, 1.0015 ** event.deltaY, limits));
    };
    shown?.addEventListener("wheel", turned, { passive: false });
    return () => shown?.removeEventListener("wheel", turned);
  }, [canvas, width, height]);
}

function pressed(event: KeyboardEvent, props: ChartProps): void {
  const { curve, span, limits, at, brush, onSpan, onBrush, onPoint } = props;
  if (event.altKey || event.ctrlKey || event.metaKey) return;
  const now = at ?? curve.peak.time;
  const point = pointAt(curve.times, now);
  const to = (index: number) => {
    const time = curve.times[Math.min(Math.max(index, 0), curve.times.length - 1)];
    if (time === undefined) return;
    if (event.shiftKey) onBrush(ordered(brush === null ? now : brush.from === now ? brush.to : brush.from, time));
    onPoint(time);
  };
  if (event.key === "ArrowRight") to(point + 1);
  else if (event.key === "ArrowLeft") to((curve.times[point] ?? 0) < now ? point : point - 1);
  else if (event.key === "+" || event.key === "=") onSpan(zoomSpan(span, now, 1 / 1.5, limits));
  else if (event.key === "-") onSpan(zoomSpan(span, now, 1.5, limits));
  else if (event.key === "Home") to(0);
  else if (event.key === "End") to(curve.times.length - 1);
  else if (event.key === "p") onPoint(curve.peak.time);
  else if (event.key === "0") onSpan(limits);
  else if (event.key === "Escape") onBrush(null);
  else return;
  event.preventDefault();
}
