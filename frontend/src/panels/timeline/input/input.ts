// Handles wheel, pointer and keys on the canvas.

import type { TimelineController } from "./controller.ts";
import { isTyping } from "../../../parts/controls/keys.tsx";
import { goToMoment, goToStep } from "./jumps.ts";
import { goToHighlighted } from "../highlight/controller.ts";
import { MOMENT_KINDS, SOURCES } from "./moments.ts";
import { goToMatch } from "./search.ts";
import { RULER } from "../drawing/viewport.ts";
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
export function listenToInput(canvas: HTMLElement, controller: TimelineController, hands: InputHandlers): () => void {
  const stop = new AbortController();
  const on = { signal: stop.signal };
  const drag = new Drag(canvas, controller);
  canvas.addEventListener("wheel", (event) => wheel(event, canvas, controller), { ...on, passive: false });
  canvas.addEventListener("pointerdown", (event) => drag.begin(event), on);
  canvas.addEventListener("pointermove", (event) => {
    controller.picture.motion.pointer = event.offsetX / controller.picture.viewport.width;
    if (drag.move(event)) hands.over(null);
    else hands.over({ x: event.offsetX, y: event.offsetY });
  }, on);
  canvas.addEventListener("pointerup", (event) => drag.end(event), on);
  canvas.addEventListener("pointercancel", () => drag.cancel(), on);
  canvas.addEventListener("pointerleave", () => hands.over(null), on);
  canvas.addEventListener("dblclick", (event) => doubleClick(event, controller), on);
  addEventListener("keydown", (event) => pressed(event, controller, hands), on);
  addEventListener("keyup", (event) => {
    const held = HELD[event.key.toLowerCase()];
    if (held) controller.picture.motion.release(held);
  }, on);
  addEventListener("blur", () => controller.picture.motion.release(), on);
  return () => stop.abort();
}

function wheel(event: WheelEvent, canvas: HTMLElement, controller: TimelineController): void {
  event.preventDefault();
  const { viewport, motion } = controller.picture;
  const unit = event.deltaMode === 1 ? LINE : event.deltaMode === 2 ? canvas.clientHeight : 1;
  const [dx, dy] = [event.deltaX * unit, event.deltaY * unit];
  if (event.ctrlKey || event.metaKey) {
    const by = Math.min(Math.max(dy, -300), 300);
    motion.zoom(viewport.time(event.offsetX), Math.exp(by * WHEEL_ZOOM));
  } else if (event.shiftKey || Math.abs(dx) > Math.abs(dy)) {
    motion.pan((event.shiftKey && dx === 0 ? dy : dx) * viewport.pixel);
  } else viewport.scrollTo(viewport.scroll + dy);
  controller.picture.redraw();
}

function doubleClick(event: MouseEvent, controller: TimelineController): void {
  const slice = controller.picture.hit(event.offsetX, event.offsetY);
  if (slice !== null && slice.id >= 0) controller.fit();
  else if (slice === null) controller.whole();
}

/** A pointer that is held down: pans, or marks an area on the ruler and with shift. */
class Drag {
  readonly #canvas: HTMLElement;
  readonly #controller: TimelineController;
  #from: { x: number; y: number; time: number; marks: boolean } | null = null;
  #last = { x: 0, y: 0 };
  #moved = false;

  constructor(canvas: HTMLElement, controller: TimelineController) {
    this.#canvas = canvas;
    this.#controller = controller;
  }

  begin(event: PointerEvent): void {
    if (event.button !== 0) return;
    const { offsetX: x, offsetY: y } = event;
    this.#canvas.setPointerCapture(event.pointerId);
    const marks = event.shiftKey || y < RULER || this.#controller.marking;
    this.#from = { x, y, time: this.#controller.picture.viewport.time(x), marks };
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
    const { viewport, motion } = this.#controller.picture;
    if (from.marks) this.#mark(from, x, y);
    else {
      motion.pan((this.#last.x - x) * viewport.pixel);
      viewport.scrollTo(viewport.scroll + this.#last.y - y);
    }
    this.#last = { x, y };
    this.#controller.picture.redraw();
    return true;
  }

  #mark(from: { y: number; time: number }, x: number, y: number): void {
    const { viewport } = this.#controller.picture;
    const time = Math.min(Math.max(viewport.time(x), viewport.limits.from), viewport.limits.to);
    const [low, high] = [Math.min(from.y, y), Math.max(from.y, y)];
    const tracks = from.y < RULER ? null : viewport.tracksBetween(low, high);
    const area = { from: Math.min(from.time, time), to: Math.max(from.time, time), tracks };
    this.#controller.picture.choose({ area });
  }

  end(event: PointerEvent): void {
    const from = this.#from;
    this.#from = null;
    if (from === null) return;
    const { area } = this.#controller.picture.chosen;
    if (!this.#moved) this.#click(event, from.marks);
    else if (from.marks && area !== null) {
      this.#controller.mark({ ...area, from: Math.floor(area.from), to: Math.ceil(area.to) });
    }
  }

  #click(event: PointerEvent, marks: boolean): void {
    const { picture } = this.#controller;
    if (marks) {
      this.#controller.mark(null);
      return;
    }
    const end = picture.arrowEnd(event.offsetX, event.offsetY);
    if (end !== undefined && end.slice !== picture.chosen.selected?.id) void this.#controller.open(end.slice);
    else this.#controller.select(picture.hit(event.offsetX, event.offsetY), { show: false });
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

function pressed(event: KeyboardEvent, controller: TimelineController, hands: InputHandlers): void {
  const isChord = event.ctrlKey || event.metaKey || event.altKey;
  if (isChord || isTyping(event) || document.querySelector("dialog[open]") !== null) return;
  const held = HELD[event.key.toLowerCase()];
  const does = held === undefined ? meaning(event, controller, hands) : () => controller.picture.motion.hold(held);
  if (does === undefined) return;
  event.preventDefault();
  does();
  controller.picture.redraw();
}

/** The action of a key; undefined if it has none. */
function meaning(event: KeyboardEvent, controller: TimelineController, hands: InputHandlers): (() => void) | undefined {
  const followed = FOLLOWED[event.key];
  if (followed !== undefined) return isInPanes(event) ? undefined : () => arrow(followed, controller);
  const kind = MOMENT_KINDS.find((known) => SOURCES[known].key === event.key.toLowerCase());
  if (kind !== undefined) return () => void goToMoment(controller, kind, event.shiftKey ? -1 : 1);
  switch (event.key) {
    case "f":
    case "F":
      return () => controller.fit();
    case "k":
    case "K":
      return () => controller.fitWork();
    case "0":
      return () => controller.whole();
    case "m":
    case "M":
      return () => controller.markSeen();
    case "n":
      return () => void goToMatch(controller, 1);
    case "N":
      return () => void goToMatch(controller, -1);
    case ".":
      return () => goToHighlighted(controller, 1);
    case ",":
      return () => goToHighlighted(controller, -1);
    case "[":
      return () => goToStep(controller, -1);
    case "]":
      return () => goToStep(controller, 1);
    case "t":
      return () => hands.listing();
    case "Enter":
      return isControl(event) || controller.picture.chosen.selected === null ? undefined : () => hands.openDetails();
    case "Escape":
      return () => controller.close();
  }
  return undefined;
}

function arrow(key: string, controller: TimelineController): void {
  if (controller.picture.chosen.selected === null) selectMiddle(controller);
  else controller.follow(key);
}

/** Selects the slice closest to the middle of the canvas. */
function selectMiddle(controller: TimelineController): void {
  const { picture } = controller;
  const { width, height } = picture.viewport;
  for (let y = RULER; y < height; y += 8) {
    for (let away = 0; away < width / 2; away += 8) {
      const slice = picture.hit(width / 2 + away, y) ?? picture.hit(width / 2 - away, y);
      if (slice === null || slice.id < 0) continue;
      controller.select(slice);
      return;
    }
  }
}

/** Arrows scroll where text is read. */
function isInPanes(event: KeyboardEvent): boolean {
  return event.target instanceof Element && event.target.closest(".timeline-pane") !== null;
}

function isControl(event: KeyboardEvent): boolean {
  return event.target instanceof Element && event.target.closest("a, button, summary") !== null;
}
