// The critical path as a chart: dragging zooms in, a click chooses a segment, arrows walk along it.

import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { prepareCanvas } from "../../draw/canvas.ts";
import { ticks } from "../../draw/ticks.ts";
import { useSize } from "../../parts/charts/sized.ts";
import { usePalette } from "../../parts/charts/theme.ts";
import { plain } from "../../parts/text/plain.ts";
import { timeText } from "../../units.ts";
import type { Band } from "./band.ts";
import { instantAt, segmentAt } from "./band.ts";
import { heightOf, laneAt, NAMES, paint } from "./painting.ts";

/** Shortest drag in pixels; shorter ones are clicks. */
const CLICK = 4;
/** How far from a narrow segment the pointer still finds it, in pixels. */
const REACH = 3;

interface ChartProps {
  band: Band;
  /** When the steps begin: times on the scale count from it. */
  origin: number;
  from: number;
  to: number;
  /** The chosen segment; -1 for none. */
  chosen: number;
  describe: (at: number) => string;
  onChoose: (at: number) => void;
  /** A stretch was chosen; null for all. */
  onSpan: (span: readonly [number, number] | null) => void;
}

export function PathChart(props: ChartProps) {
  const { band, origin, from, to, chosen } = props;
  const place = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const size = useSize(place);
  const palette = usePalette();
  const [hovered, setHovered] = useState(-1);
  const [brush, setBrush] = useState<readonly [number, number] | null>(null);
  const width = Math.max(size.width - NAMES, 1);
  const height = heightOf(band.lanes.length);
  const marks = useMemo(() => {
    const span = { from: from - origin, to: to - origin };
    return ticks(span, width).marks.map(({ time, text }) => ({ at: (time - span.from) / (span.to - span.from), text }));
  }, [from, to, origin, width]);
  useLayoutEffect(() => {
    const ctx = canvas.current && prepareCanvas(canvas.current, { width: size.width, height });
    if (ctx) paint(ctx, palette, { band, from, to, width, chosen, hovered, brush, ticks: marks });
  }, [band, from, to, width, chosen, hovered, brush, palette, size, marks]);
  const across = (event: PointerEvent) => event.clientX - (place.current?.getBoundingClientRect().left ?? 0) - NAMES;
  const under = (event: PointerEvent) => {
    const top = place.current?.getBoundingClientRect().top ?? 0;
    const lane = laneAt(event.clientY - top, band.lanes.length);
    if (lane === null || across(event) < 0) return -1;
    return segmentAt(band, lane, instantAt(across(event), from, to, width), (REACH * (to - from)) / width);
  };
  const released = (event: PointerEvent) => {
    if (brush === null) return;
    setBrush(null);
    const [low, high] = [Math.min(...brush), Math.max(...brush)].map((x) => Math.round(instantAt(Math.max(0, Math.min(x, width)), from, to, width))) as [number, number];
    if (Math.abs(brush[1] - brush[0]) < CLICK) props.onChoose(under(event));
    else if (high > low) props.onSpan([low, high]);
  };
  return (
    <div
      ref={place}
      class="path-canvas"
      style={{ height: `${height}px` }}
      tabIndex={0}
      role="application"
      aria-roledescription="chart"
      aria-label={`The critical path over ${timeText(to - from)}. ${chosen >= 0 ? plain(props.describe(chosen)) : "Arrow keys walk along it."}`}
      data-segments={band.segments.length}
      data-lanes={band.lanes.length}
      title={hovered >= 0 ? plain(props.describe(hovered)) : undefined}
      onPointerDown={(event) => {
        if (event.button !== 0 || across(event) < 0) return;
        event.currentTarget.setPointerCapture(event.pointerId);
        setBrush([across(event), across(event)]);
      }}
      onPointerMove={(event) => (brush === null ? setHovered(under(event)) : setBrush([brush[0], across(event)]))}
      onPointerUp={released}
      onPointerCancel={() => setBrush(null)}
      onPointerLeave={() => setHovered(-1)}
      onDblClick={() => props.onSpan(null)}
      onKeyDown={(event) => pressed(event, props)}
    >
      <canvas ref={canvas} aria-hidden="true" />
    </div>
  );
}

function pressed(event: KeyboardEvent, { band, chosen, onChoose, onSpan }: ChartProps): void {
  if (event.altKey || event.ctrlKey || event.metaKey) return;
  const last = band.segments.length - 1;
  if (event.key === "ArrowRight") onChoose(Math.min(chosen + 1, last));
  else if (event.key === "ArrowLeft") onChoose(Math.max(chosen - 1, 0));
  else if (event.key === "Home") onChoose(0);
  else if (event.key === "End") onChoose(last);
  else if (event.key === "Escape") onChoose(-1);
  else if (event.key === "Backspace") onSpan(null);
  else return;
  event.preventDefault();
  event.stopPropagation();
}
