// The layout around the canvas: tools, overview, track names and details.

import { useEffect, useRef, useState } from "preact/hooks";
import type { Page } from "../../../data/api.ts";
import type { Span } from "../../../draw/span.ts";
import { plain } from "../../../parts/text/plain.ts";
import { useTheme } from "../../../parts/charts/theme.ts";
import type { PanelProps } from "../../panel.ts";
import { AreaPane } from "./area.tsx";
import type { ShownRank } from "../tracks/besides.ts";
import { RankChooser } from "./choosing.tsx";
import { TimelineController } from "../input/desk.ts";
import { Details } from "./details.tsx";
import { Gutter } from "./gutter.tsx";
import { counterAt } from "../input/hits.ts";
import { listenToInput } from "../input/input.ts";
import { JointTiles } from "../tiles/joint.ts";
import { Listing } from "./listing.tsx";
import { Names } from "../drawing/names.ts";
import { Overview } from "./overview.tsx";
import { Picture } from "../drawing/picture.ts";
import { cellReader } from "../tiles/reading.ts";
import { RULER } from "../drawing/sight.ts";
import type { Step } from "../drawing/sight.ts";
import { Store } from "../tiles/store.ts";
import type { Ask } from "../tiles/store.ts";
import { Tip } from "./tip.tsx";
import type { Pointed } from "./tip.tsx";
import { Tools } from "./tools.tsx";
import type { Group } from "../tracks/tracks.ts";

type BoardProps = PanelProps & { groups: Group[]; limits: Span; besides: ShownRank[]; left: string[] };

export function Board(props: BoardProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [desk, setDesk] = useState<TimelineController | null>(null);
  const [, redraw] = useState(0);
  useEffect(() => {
    if (canvas.current === null) return undefined;
    const made = begin(canvas.current, props);
    made.changed = () => redraw((known) => known + 1);
    setDesk(made);
    return () => made.picture.stop();
  }, []);
  useEffect(() => void desk?.obey(props.params), [desk, props.params]);
  const theme = useTheme();
  useEffect(() => desk?.picture.retheme(), [desk, theme]);
  const [pointed, point] = useState<Pointed | null>(null);
  const [listed, list] = useState(false);
  const pane = useRef<HTMLDivElement>(null);
  useHands(canvas, desk, {
    point,
    openDetails: () => pane.current?.querySelector<HTMLElement>("a, button")?.focus(),
    listing: () => list((shown) => !shown),
  });
  const chosen = desk?.picture.chosen;
  return (
    <div class="timeline">
      <Tools desk={desk} listed={listed} onList={() => list((shown) => !shown)}>
        <RankChooser {...props} />
      </Tools>
      {props.left.length > 0 && (
        <p class="muted timeline-left" role="note">Not shown, as nothing tells when they were recorded: {props.left.map(plain).join(", ")}.</p>
      )}
      <Overview desk={desk} groups={props.groups.filter((group) => (group.at ?? 0) === 0)} />
      <div class="timeline-board" style={{ "--ruler": `${RULER}px` }}>
        {desk && <Gutter desk={desk} />}
        <Stage canvas={canvas} desk={desk} />
        {desk && <Scrollbar desk={desk} />}
        {pointed && <Tip pointed={pointed} desk={desk} />}
        {desk && listed && <Listing desk={desk} onClose={() => list(false)} />}
      </div>
      {desk && chosen && (chosen.area !== null || chosen.selected !== null) && (
        <div class="timeline-pane" ref={pane}>
          {chosen.area !== null ? <AreaPane {...props} desk={desk} area={chosen.area} /> : <Details {...props} desk={desk} />}
        </div>
      )}
      <p class="visually-hidden" role="status" aria-live="polite">{desk?.said}</p>
    </div>
  );
}

function begin(canvas: HTMLCanvasElement, props: BoardProps): TimelineController {
  const { data, trace, groups, limits, besides } = props;
  const names = new Names();
  const stores = besides.map((beside) => {
    const ask = (...words: Parameters<Ask>) => data.page(beside.trace, "timeline", ...words);
    return { beside, store: new Store(ask, names, () => picture.redraw(), besides.length) };
  });
  const store = new JointTiles(stores);
  const picture: Picture = new Picture(canvas, { groups, limits, names, store });
  const desk = new TimelineController(data, besides, picture);
  desk.twins.learn(data, besides).then(
    () => picture.redraw(),
    () => undefined, // the picture is the same without what joins its collectives
  );
  data.page(trace.id, "steps", {}, { columns: ["step", "start", "host_time"] }).then(
    (page) => desk.know(stepsOf(page)),
    () => undefined, // a trace without steps has none to draw; the panel `steps` tells why
  );
  return desk;
}

function stepsOf(page: Page): Step[] {
  const read = cellReader(page);
  return Array.from({ length: page.rows }, (_, row) => {
    const start = read.number("start", row);
    return { number: read.number("step", row), start, end: start + (read.number("host_time", row) || 0) };
  });
}

interface HandsProps {
  point: (at: Pointed | null) => void;
  openDetails: () => void;
  listing: () => void;
}

function useHands(canvas: { current: HTMLCanvasElement | null }, desk: TimelineController | null, props: HandsProps): void {
  useEffect(() => {
    if (desk === null || canvas.current === null) return undefined;
    const { picture } = desk;
    const over = (at: { x: number; y: number } | null) => {
      const slice = at && picture.hit(at.x, at.y);
      if (slice?.id !== picture.chosen.hovered?.id || slice?.start !== picture.chosen.hovered?.start) {
        picture.choose({ hovered: slice, twins: desk.joined(slice ?? picture.chosen.selected) });
      }
      const counter = at && counterAt(picture.sight, picture.store, at.x, at.y);
      const { width, height } = picture.sight;
      props.point(at && (slice || counter) ? { at, slice, counter, width, height } : null);
    };
    return listenToInput(canvas.current, desk, { over, openDetails: props.openDetails, listing: props.listing });
  }, [desk]);
}

/** The canvas. */
function Stage(props: { canvas: { current: HTMLCanvasElement | null }; desk: TimelineController | null }) {
  const { desk } = props;
  const holder = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (desk === null || holder.current === null) return undefined;
    const { current } = holder;
    const fit = () => desk.picture.resize(current.clientWidth, current.clientHeight);
    const observer = new ResizeObserver(fit);
    fit();
    observer.observe(current);
    const drawn = desk.picture.follow(() => {
      current.setAttribute("aria-busy", String(desk.picture.lacks));
    });
    return () => {
      observer.disconnect();
      drawn();
    };
  }, [desk]);
  const selected = desk?.picture.chosen.selected;
  return (
    <div class="timeline-stage" ref={holder} aria-busy={desk?.picture.lacks ?? true}>
      <canvas
        ref={props.canvas}
        tabIndex={0}
        role="application"
        aria-label={`Timeline of slices by thread and stream. ${selected ? `Selected: ${selected.name.slice(0, 120)}.` : ""} Arrow keys go from slice to slice, t shows a table, ? all keys.`}
      />
    </div>
  );
}

/** A scroll bar that is synchronized with the canvas. */
function Scrollbar(props: { desk: TimelineController }) {
  const bar = useRef<HTMLDivElement>(null);
  const inner = useRef<HTMLDivElement>(null);
  const own = useRef(0);
  const { picture } = props.desk;
  useEffect(
    () =>
      picture.follow(() => {
        if (bar.current === null || inner.current === null) return;
        inner.current.style.height = `${picture.sight.layout.height}px`;
        bar.current.scrollTop = picture.sight.scroll;
        own.current = bar.current.scrollTop;
      }),
    [picture],
  );
  const scrolled = () => {
    // the browser also reports scrolling by the canvas itself, a moment later
    if (bar.current === null || Math.abs(bar.current.scrollTop - own.current) <= 1) return;
    picture.sight.scrollTo(bar.current.scrollTop);
    picture.redraw();
  };
  return (
    <div class="timeline-scroll" ref={bar} onScroll={scrolled} tabIndex={-1} aria-hidden="true">
      <div ref={inner} />
    </div>
  );
}
