// The canvas: it is redrawn on changes, from loaded tiles, and requests missing ones. All motion goes
// through this module.

import { fitCanvas } from "../../../draw/canvas.ts";
import { padSpan } from "../../../draw/span.ts";
import type { Span } from "../../../draw/span.ts";
import { endAt, strokeFlows } from "./arrows.ts";
import type { ArrowEnd } from "./arrows.ts";
import { strokeSelection } from "./chosen.ts";
import type { Selection } from "./chosen.ts";
import { strokeLine } from "./line.ts";
import { NarrowSlices } from "./narrow-slices.ts";
import { sliceAt } from "../input/hits.ts";
import { USUAL, arranged, showing } from "../tracks/arrangement.ts";
import type { Arrangement } from "../tracks/arrangement.ts";
import { ROW, layoutTracks, openTrackRow, partsFor } from "../tracks/layout.ts";
import type { Line, Toggled } from "../tracks/layout.ts";
import type { Tiles } from "../tiles/joint.ts";
import { Motion } from "./motion.ts";
import type { Names } from "./names.ts";
import { strokeGrid, strokeRuler } from "./ruler.ts";
import { RULER, Viewport } from "./viewport.ts";
import type { Slice, Step } from "./viewport.ts";
import { wantedParts } from "../tiles/store.ts";
import { setFont } from "./strokes.ts";
import type { Brush } from "./strokes.ts";
import { readTheme } from "./theme.ts";
import { levelFor, tilesInSpan } from "../tiles/tiles.ts";
import type { Group } from "../tracks/tracks.ts";

/** Shortest width of a slice after navigation, in pixels. */
const PART = 60;
/** Delay in ms before tiles are loaded, to skip levels while zooming. */
const SETTLED_MS = 70;

export class Picture {
  readonly viewport: Viewport;
  readonly motion: Motion;
  readonly names: Names;
  readonly store: Tiles;
  /** All groups as they are recorded. */
  readonly groups: readonly Group[];
  chosen: Selection = { selected: null, hovered: null, reference: null, twins: [], flows: [], area: null, moment: null, find: "" };
  steps: readonly Step[] = [];
  /** Whether visible tiles are still loading. */
  lacks = true;
  readonly #followers = new Set<() => void>();
  readonly #canvas: HTMLCanvasElement;
  readonly #context: CanvasRenderingContext2D;
  #theme;
  #turned: Toggled = new Set();
  #arrangement = USUAL;
  readonly #narrow = new NarrowSlices();
  #pending = 0;
  #ends: ArrowEnd[] = [];
  #matches = new Map<number, boolean>();
  #level = -1;
  #since = 0;
  #isWhole = false;

  constructor(
    canvas: HTMLCanvasElement,
    given: { groups: readonly Group[]; limits: Span; names: Names; store: Tiles },
  ) {
    const context = canvas.getContext("2d", { alpha: false });
    if (context === null) throw new Error("this browser cannot draw on a canvas");
    this.#canvas = canvas;
    this.#context = context;
    this.#theme = readTheme(canvas);
    this.groups = given.groups;
    this.names = given.names;
    this.store = given.store;
    this.viewport = new Viewport(given.limits);
    this.motion = new Motion(this.viewport);
    this.arrange(USUAL);
  }

  get theme() {
    return this.#theme;
  }

  get turned(): Toggled {
    return this.#turned;
  }

  get arrangement(): Arrangement {
    return this.#arrangement;
  }

  arrange(arrangement: Arrangement): void {
    this.#arrangement = arrangement;
    this.turn(this.#turned);
  }

  turn(turned: Toggled): void {
    this.#turned = turned;
    this.viewport.layout = layoutTracks(arranged(this.groups, this.#arrangement), turned);
    this.viewport.scrollTo(this.viewport.scroll);
    this.redraw();
  }

  know(steps: readonly Step[]): void {
    this.steps = steps;
    this.redraw();
  }

  choose(chosen: Partial<Selection>): void {
    if (chosen.find !== undefined && chosen.find !== this.chosen.find) this.#matches.clear();
    this.chosen = { ...this.chosen, ...chosen };
    this.redraw();
  }

  resize(width: number, height: number): void {
    this.viewport.width = Math.max(width, 1);
    const lower = height < this.viewport.height;
    this.viewport.height = Math.max(height, 1);
    this.viewport.scrollTo(this.viewport.scroll);
    const { selected } = this.chosen;
    if (lower && selected !== null) this.reveal(selected.track, selected.row);
    this.redraw();
  }

  retheme(): void {
    this.#theme = readTheme(this.#canvas);
    this.redraw();
  }

  /** Calls a listener after each redraw; returns a function that removes it. */
  follow(told: () => void): () => void {
    this.#followers.add(told);
    this.redraw();
    return () => void this.#followers.delete(told);
  }

  redraw(): void {
    if (this.#pending === 0) this.#pending = requestAnimationFrame((now) => this.#frame(now));
  }

  stop(): void {
    cancelAnimationFrame(this.#pending);
    this.#pending = -1;
  }

  /** Brings a slice into view: its row, and a stretch of time in which it can be seen. */
  show(slice: Slice, { zoom = false } = {}): void {
    const long = slice.end - slice.start;
    const { viewport } = this;
    const part = Math.min(slice.end, viewport.span.to) - Math.max(slice.start, viewport.span.from);
    const seen = part >= Math.min(long, PART * viewport.pixel);
    const wide = long * viewport.scale;
    if (zoom) this.motion.go(padSpan({ from: slice.start, to: slice.end }, 0.15, viewport.limits));
    else if (wide < 2) this.motion.go(padSpan({ from: slice.start, to: slice.end }, 12, viewport.limits));
    else if (!seen) this.#center(slice);
    this.reveal(slice.track, slice.row);
    this.redraw();
  }

  #center(slice: Slice): void {
    const { span, limits } = this.viewport;
    const length = Math.max(span.to - span.from, (slice.end - slice.start) * 1.2);
    const middle = (slice.start + slice.end) / 2;
    this.motion.go(padSpan({ from: middle - length / 2, to: middle + length / 2 }, 0, limits));
  }

  /** Opens what hides a row and scrolls to it. */
  reveal(track: number, row: number): void {
    this.#arrangement = showing(this.groups, this.#arrangement, track);
    const groups = arranged(this.groups, this.#arrangement);
    const turned = openTrackRow(groups, this.#turned, track, row);
    if (turned !== this.#turned || this.viewport.lineOf(track) === undefined) this.turn(turned);
    const line = this.viewport.lineOf(track);
    const { fixed } = this.viewport;
    if (line === undefined || line.y < fixed) return;
    const top = line.y + line.head + row * ROW;
    const room = this.viewport.height - RULER;
    if (top < this.viewport.scroll + fixed + 4) this.viewport.scrollTo(top - fixed - 40);
    else if (top + 2 * ROW > this.viewport.scroll + room) this.viewport.scrollTo(top + 3 * ROW - room);
  }

  /** A slice on the row of its name, where rows are by name. */
  placed(slice: Slice): Slice {
    const names = this.viewport.lineOf(slice.track)?.track?.names;
    const row = names?.findIndex(({ name }) => name === slice.name) ?? -1;
    return row < 0 ? slice : { ...slice, row };
  }

  hit(x: number, y: number): Slice | null {
    return sliceAt(this.viewport, this.store, this.names, x, y);
  }

  arrowEnd(x: number, y: number): ArrowEnd | undefined {
    return endAt(this.#ends, x, y);
  }

  /** Tiles of the level that is shown. */
  get level(): number {
    return levelFor(this.viewport.pixel);
  }

  #frame(now: number): void {
    this.#pending = 0;
    const moving = this.motion.step(now);
    this.#draw();
    this.#wants(now, moving);
    for (const told of this.#followers) told();
    if (moving) this.redraw();
  }

  #draw(): void {
    const { viewport } = this;
    fitCanvas(this.#canvas, viewport.width, viewport.height);
    const brush = this.#brush();
    setFont(brush);
    brush.context.fillStyle = this.#theme.surface;
    brush.context.fillRect(0, 0, viewport.width, viewport.height);
    strokeGrid(brush, viewport, this.steps);
    const [edge, seen] = [RULER + viewport.fixed, viewport.seen()];
    this.#strokeLines(brush, seen.filter((line) => viewport.ceiling(line) === edge), edge, viewport.height);
    if (edge > RULER) {
      this.#strokeLines(brush, seen.filter((line) => viewport.ceiling(line) < edge), RULER, edge);
      brush.context.fillStyle = this.#theme.strong;
      brush.context.fillRect(0, edge - 1, viewport.width, 1);
    }
    this.#ends = strokeFlows(brush, viewport, this.chosen.flows);
    strokeRuler(brush, viewport, this.steps, this.chosen.area);
  }

  #brush(): Brush {
    const { viewport, chosen } = this;
    return {
      context: this.#context,
      theme: this.#theme,
      names: this.names,
      from: viewport.span.from,
      scale: viewport.scale,
      width: viewport.width,
      ratio: devicePixelRatio || 1,
      matches: chosen.find === "" ? null : (name) => this.isFound(name),
      narrow: this.#narrow,
      texts: [],
    };
  }

  isFound(name: number): boolean {
    let found = this.#matches.get(name);
    if (found === undefined) {
      found = (this.names.texts[name] ?? "").toLowerCase().includes(this.chosen.find.trim().toLowerCase());
      this.#matches.set(name, found);
    }
    return found;
  }

  /** Draws lines with what is selected on them, between two heights of the canvas. */
  #strokeLines(brush: Brush, lines: readonly Line[], top: number, bottom: number): void {
    const { context } = brush;
    context.save();
    context.beginPath();
    context.rect(0, top, this.viewport.width, bottom - top);
    context.clip();
    this.#narrow.begin(this.viewport.width, brush.ratio);
    for (const line of lines) strokeLine(brush, this.viewport, this.store, line);
    this.#narrow.put(context);
    strokeSelection(brush, this.viewport, this.chosen, lines);
    context.restore();
  }

  #wants(now: number, moving: boolean): void {
    if (this.level !== this.#level) {
      this.#level = this.level;
      this.#since = now;
    }
    const settled = now - this.#since > SETTLED_MS;
    if (moving && !settled) return;
    const { span, limits } = this.viewport;
    const places = tilesInSpan(span.from, span.to, this.level).map((number) => ({ level: this.level, number }));
    const seen = partsFor(this.viewport.seen(120), places);
    const all = seen.every((one) => this.store.has(one));
    this.lacks = !all && this.store.error === null;
    if (all && !this.#isWhole) {
      this.#isWhole = true;
      performance.mark("timeline whole"); // benchmarks wait for it
    }
    const nearby = all && !moving ? partsFor(this.viewport.seen(), wantedParts(span, this.level, limits)) : [];
    this.store.want([...seen, ...nearby]);
  }
}
