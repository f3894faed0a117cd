// The layout around the canvas: tools, overview, track names and details.

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Span } from "../../../draw/span.ts";
import { useTheme } from "../../../parts/charts/theme.ts";
import type { PanelProps } from "../../panel.ts";
import { AreaPane } from "./area.tsx";
import { BesideChooser } from "./beside-chooser.tsx";
import { RankChooser } from "./rank-chooser.tsx";
import { TimelineController } from "../input/controller.ts";
import { Details } from "./details.tsx";
import { Gutter } from "./gutter.tsx";
import { counterAt } from "../input/hits.ts";
import { listenToInput } from "../input/input.ts";
import { Listing } from "./listing.tsx";
import { MomentNote } from "./moments.tsx";
import { Overview } from "./overview.tsx";
import { Picture } from "../drawing/picture.ts";
import { RULER } from "../drawing/viewport.ts";
import { Tip } from "./tip.tsx";
import type { Pointed } from "./tip.tsx";
import { Tools } from "./tools.tsx";
import { MOST_RANKS } from "../tracks/sources.ts";
import type { Source } from "../tracks/sources.ts";
import type { Group } from "../tracks/tracks.ts";
import type { LoadedTiles } from "../tiles/loaded.ts";
import { loadSteps } from "../input/steps.ts";

type BoardProps = PanelProps & {
  groups: Group[];
  limits: Span;
  sources: Source[];
  rows: { lanes?: "name" };
  tiles: LoadedTiles;
  /** Another one makes another picture; what stands around it stays, such as an open box. */
  identity: string;
  /** What is said above the picture. */
  children: ComponentChildren;
};

export function Board(props: BoardProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [controller, setController] = useState<TimelineController | null>(null);
  const [, redraw] = useState(0);
  useEffect(() => {
    if (canvas.current === null) return undefined;
    const made = begin(canvas.current, props);
    made.changed = () => redraw((known) => known + 1);
    setController(made);
    return () => made.picture.stop();
  }, [props.identity]);
  useEffect(() => void controller?.obey(props.params), [controller, props.params]);
  const theme = useTheme();
  useEffect(() => controller?.picture.retheme(), [controller, theme]);
  const [pointed, point] = useState<Pointed | null>(null);
  const [listed, list] = useState(false);
  const pane = useRef<HTMLDivElement>(null);
  useHands(canvas, controller, {
    point,
    openDetails: () => pane.current?.querySelector<HTMLElement>("a, button")?.focus(),
    listing: () => list((shown) => !shown),
  });
  const chosen = controller?.picture.chosen;
  return (
    <div class="timeline">
      <Tools controller={controller} listed={listed} onList={() => list((shown) => !shown)}>
        <RankChooser {...props} />
        <BesideChooser {...props} />
      </Tools>
      {props.children}
      {controller && <MomentNote controller={controller} isListed={(view) => props.views.has(view)} />}
      <Overview controller={controller} groups={props.groups.filter((group) => (group.at ?? 0) === 0)} />
      <div class="timeline-board" style={{ "--ruler": `${RULER}px` }}>
        {controller && <Gutter controller={controller} />}
        <Stage canvas={canvas} controller={controller} />
        {controller && <Scrollbar controller={controller} />}
        {pointed && <Tip pointed={pointed} controller={controller} />}
        {controller && listed && <Listing controller={controller} onClose={() => list(false)} />}
      </div>
      {controller && chosen && (chosen.area !== null || chosen.selected !== null) && (
        <div class="timeline-pane" ref={pane}>
          {chosen.area !== null ? <AreaPane {...props} controller={controller} area={chosen.area} /> : <Details {...props} controller={controller} />}
        </div>
      )}
      <p class="visually-hidden" role="status" aria-live="polite">{controller?.said}</p>
    </div>
  );
}

function begin(canvas: HTMLCanvasElement, props: BoardProps): TimelineController {
  const { data, trace, groups, limits, sources, rows, tiles } = props;
  const store = tiles.of(data, sources, rows, () => picture.redraw());
  const picture: Picture = new Picture(canvas, { groups, limits, names: tiles.names, store });
  const controller = new TimelineController({ data, sources, picture, views: props.views, rows });
  controller.twins.learn(data, sources.filter(({ at }) => at < MOST_RANKS)).then(
    () => picture.redraw(),
    () => undefined, // the picture is the same without what joins its collectives
  );
  loadSteps(data, trace.id).then(
    (steps) => picture.know(steps),
    () => undefined, // a trace without steps has none to draw; the panel `steps` tells why
  );
  return controller;
}

interface HandsProps {
  point: (at: Pointed | null) => void;
  openDetails: () => void;
  listing: () => void;
}

function useHands(canvas: { current: HTMLCanvasElement | null }, controller: TimelineController | null, props: HandsProps): void {
  useEffect(() => {
    if (controller === null || canvas.current === null) return undefined;
    const { picture } = controller;
    const over = (at: { x: number; y: number } | null) => {
      const slice = at && picture.hit(at.x, at.y);
      if (slice?.id !== picture.chosen.hovered?.id || slice?.start !== picture.chosen.hovered?.start) {
        picture.choose({ hovered: slice, twins: controller.joined(slice ?? picture.chosen.selected) });
      }
      const counter = at && counterAt(picture.viewport, picture.store, at.x, at.y);
      const { width, height } = picture.viewport;
      props.point(at && (slice || counter) ? { at, slice, counter, width, height } : null);
    };
    return listenToInput(canvas.current, controller, { over, openDetails: props.openDetails, listing: props.listing });
  }, [controller]);
}

/** The canvas. */
function Stage(props: { canvas: { current: HTMLCanvasElement | null }; controller: TimelineController | null }) {
  const { controller } = props;
  const holder = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (controller === null || holder.current === null) return undefined;
    const { current } = holder;
    const fit = () => controller.picture.resize(current.clientWidth, current.clientHeight);
    const observer = new ResizeObserver(fit);
    fit();
    observer.observe(current);
    const drawn = controller.picture.follow(() => {
      current.setAttribute("aria-busy", String(controller.picture.lacks));
    });
    return () => {
      observer.disconnect();
      drawn();
    };
  }, [controller]);
  const selected = controller?.picture.chosen.selected;
  return (
    <div class="timeline-stage" ref={holder} aria-busy={controller?.picture.lacks ?? true}>
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
function Scrollbar(props: { controller: TimelineController }) {
  const bar = useRef<HTMLDivElement>(null);
  const inner = useRef<HTMLDivElement>(null);
  const own = useRef(0);
  const { picture } = props.controller;
  useEffect(
    () =>
      picture.follow(() => {
        if (bar.current === null || inner.current === null) return;
        inner.current.style.height = `${picture.viewport.layout.height}px`;
        bar.current.scrollTop = picture.viewport.scroll;
        own.current = bar.current.scrollTop;
      }),
    [picture],
  );
  const scrolled = () => {
    // the browser also reports scrolling by the canvas itself, a moment later
    if (bar.current === null || Math.abs(bar.current.scrollTop - own.current) <= 1) return;
    picture.viewport.scrollTo(bar.current.scrollTop);
    picture.redraw();
  };
  return (
    <div class="timeline-scroll" ref={bar} onScroll={scrolled} tabIndex={-1} aria-hidden="true">
      <div ref={inner} />
    </div>
  );
}
