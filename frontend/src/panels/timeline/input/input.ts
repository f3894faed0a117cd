// Handles wheel, pointer and keys on the canvas.

import type { TimelineController } from "./desk.ts";
import { isTyping } from "../../../parts/controls/keys.tsx";
import { RULER } from "../drawing/sight.ts";
import type { Held } from "../drawing/motion.ts";

/** Pixels that the pointer may move during a click. */
const CLICK = 4;
const WHEEL_ZOOM = 0.0022;
const LINE = 18;

const HELD: Record<string, Held> = { w: "in", s: "out", a: "left", d: "right" };

export interface InputHandlers {
  /** The pointer is over the canvas at, or has left it. */
  over(at: { x: number; y: number } | null): void;
  openDetails(): void;
  listing(): void;
}

/** Adds listeners to the canvas; returns a function that removes them. */
export function listenToInput(canvas: HTMLElement, desk: TimelineController, hands: InputHandlers): () => void {
  const stop = new AbortController();
  const on = { signal: stop.signal };
  const drag = new Drag(canvas, desk);
  canvas.addEventListener("wheel", (event) => wheel(event, canvas, desk), { ...on, passive: false });
  canvas.addEventListener("pointerdown", (event) => drag.begin(event), on);
  canvas.addEventListener("pointermove", (event) => {
    desk.picture.motion.pointer = event.offsetX / desk.picture.sight.width;
    if (drag.move(event)) hands.over(null);
    else hands.over({ x: event.offsetX, y: event.offsetY });
  }, on);
  canvas.addEventListener("pointerup", (event) => drag.end(event), on);
  canvas.addEventListener("pointercancel", () => drag.cancel(), on);
  canvas.addEventListener("pointerleave", () => hands.over(null), on);
  canvas.addEventListener("dblclick", (event) => doubleClick(event, desk), on);
  addEventListener("keydown", (event) => pressed(event, desk, hands), on);
  addEventListener("keyup", (event) => {
    const held = HELD[event.key.toLowerCase()];
    if (held) desk.picture.motion.release(held);
  }, on);
  addEventListener("blur", () => desk.picture.motion.release(), on);
  return () => stop.abort();
}

function wheel(event: WheelEvent, canvas: HTMLElement, desk: TimelineController): void {
  event.preventDefault();
  const { sight, motion } = desk.picture;
  const unit = event.deltaMode === 1 ? LINE : event.deltaMode === 2 ? canvas.clientHeight : 1;
  const [dx, dy] = [event.deltaX * unit, event.deltaY * unit];
  if (event.ctrlKey || event.metaKey) {
    const by = Math.min(Math.max(dy, -300), 300);
    motion.zoom(sight.time(event.offsetX), Math.exp(by * WHEEL_ZOOM));
  } else if (event.shiftKey || Math.abs(dx) > Math.abs(dy)) {
    motion.pan((event.shiftKey && dx === 0 ? dy : dx) * sight.pixel);
  } else sight.scrollTo(sight.scroll + dy);
  desk.picture.redraw();
}

function doubleClick(event: MouseEvent, desk: TimelineController): void {
  const slice = desk.picture.hit(event.offsetX, event.offsetY);
  if (slice !== null && slice.id >= 0) desk.fit();
  else if (slice === null) desk.whole();
}

/** A pointer that is held down: pans, or marks an area on the ruler and with shift. */
class Drag {
  readonly #canvas: HTMLElement;
  readonly #desk: TimelineController;
  #from: { x: number; y: number; time: number; marks: boolean } | null = null;
  #last = { x: 0, y: 0 };
  #moved = false;

  constructor(canvas: HTMLElement, desk: TimelineController) {
    this.#canvas = canvas;
    this.#desk = desk;
  }

  begin(event: PointerEvent): void {
    if (event.button !== 0) return;
    const { offsetX: x, offsetY: y } = event;
    this.#canvas.setPointerCapture(event.pointerId);
    const marks = event.shiftKey || y < RULER || this.#desk.marking;
    this.#from = { x, y, time: this.#desk.picture.sight.time(x), marks };
    this.#last = { x, y };
    this.#moved = false;
  }

  /** Whether the pointer is dragging. */
  move(event: PointerEvent): boolean {
    const from = this.#from;
    if (from === null) return false;
    const { offsetX: x, offsetY: y } = event;
    this.#moved ||= Math.hypot(x - from.x, y - from.y) > CLICK;
    if (!this.#moved) return true;
    const { sight, motion } = this.#desk.picture;
    if (from.marks) this.#mark(from, x, y);
    else {
      motion.pan((this.#last.x - x) * sight.pixel);
      sight.scrollTo(sight.scroll + this.#last.y - y);
    }
    this.#last = { x, y };
    this.#desk.picture.redraw();
    return true;
  }

  #mark(from: { y: number; time: number }, x: number, y: number): void {
    const { sight } = this.#desk.picture;
    const time = Math.min(Math.max(sight.time(x), sight.limits.from), sight.limits.to);
    const [low, high] = [Math.min(from.y, y), Math.max(from.y, y)];
    const tracks = from.y < RULER ? null : sight.tracksBetween(low, high);
    const area = { from: Math.min(from.time, time), to: Math.max(from.time, time), tracks };
    this.#desk.picture.choose({ area });
  }

  end(event: PointerEvent): void {
    const from = this.#from;
    this.#from = null;
    if (from === null) return;
    const { area } = this.#desk.picture.chosen;
    if (!this.#moved) this.#click(event, from.marks);
    else if (from.marks && area !== null) {
      this.#desk.mark({ ...area, from: Math.floor(area.from), to: Math.ceil(area.to) });
    }
  }

  #click(event: PointerEvent, marks: boolean): void {
    const { picture } = this.#desk;
    if (marks) {
      this.#desk.mark(null);
      return;
    }
    const end = picture.arrowEnd(event.offsetX, event.offsetY);
    if (end !== undefined && end.slice !== picture.chosen.selected?.id) void this.#desk.open(end.slice);
    else this.#desk.select(picture.hit(event.offsetX, event.offsetY), { show: false });
  }

  cancel(): void {
    this.#from = null;
  }
}

const FOLLOWED: Record<string, string> = {
  ArrowLeft: "previous",
  ArrowRight: "next",
  ArrowUp: "parent",
  ArrowDown: "child",
};

function pressed(event: KeyboardEvent, desk: TimelineController, hands: InputHandlers): void {
  const isChord = event.ctrlKey || event.metaKey || event.altKey;
  if (isChord || isTyping(event) || document.querySelector("dialog[open]") !== null) return;
  const held = HELD[event.key.toLowerCase()];
  const does = held === undefined ? meaning(event, desk, hands) : () => desk.picture.motion.hold(held);
  if (does === undefined) return;
  event.preventDefault();
  does();
  desk.picture.redraw();
}

/** The action of a key; undefined if it has none. */
function meaning(event: KeyboardEvent, desk: TimelineController, hands: InputHandlers): (() => void) | undefined {
  const followed = FOLLOWED[event.key];
  if (followed !== undefined) return isInPanes(event) ? undefined : () => arrow(followed, desk);
  switch (event.key) {
    case "f":
    case "F":
      return () => desk.fit();
    case "0":
      return () => desk.whole();
    case "m":
    case "M":
      return () => desk.markSeen();
    case "n":
      return () => void desk.match(1);
    case "N":
      return () => void desk.match(-1);
    case "[":
      return () => desk.step(-1);
    case "]":
      return () => desk.step(1);
    case "t":
      return () => hands.listing();
    case "Enter":
      return isControl(event) || desk.picture.chosen.selected === null ? undefined : () => hands.openDetails();
    case "Escape":
      return () => desk.close();
  }
  return undefined;
}

function arrow(key: string, desk: TimelineController): void {
  if (desk.picture.chosen.selected === null) desk.selectMiddle();
  else desk.follow(key);
}

/** Arrows scroll where text is read. */
function isInPanes(event: KeyboardEvent): boolean {
  return event.target instanceof Element && event.target.closest(".timeline-pane") !== null;
}

function isControl(event: KeyboardEvent): boolean {
  return event.target instanceof Element && event.target.closest("a, button, summary") !== null;
}
