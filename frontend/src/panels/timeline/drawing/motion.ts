// Motion of the visible span: immediate, animated, or while a key is held.

import { interpolateSpan, moveSpan, zoomSpan } from "../../../draw/span.ts";
import type { Span } from "../../../draw/span.ts";
import type { Viewport } from "./viewport.ts";

const WAY_MS = 180;
/** Panning speed of a held key, in widths per second. */
const PAN_SPEED = 1.1;
/** Zoom factor per second of a held key. */
const ZOOM_SPEED = 9;

export type Held = "in" | "out" | "left" | "right";

export class Motion {
  readonly #viewport: Viewport;
  readonly #held = new Set<Held>();
  #way: { from: Span; to: Span; since: number | null } | null = null;
  #last: number | null = null;
  /** The centre of key zooms, as a share of the width. */
  pointer = 0.5;

  constructor(viewport: Viewport) {
    this.#viewport = viewport;
  }

  /** Animates to another time span; immediately with reduced motion. */
  go(to: Span): void {
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) {
      this.#viewport.look(to);
      return;
    }
    this.#way = { from: this.#viewport.span, to, since: null };
  }

  hold(key: Held): void {
    this.#way = null;
    this.#held.add(key);
  }

  release(key?: Held): void {
    if (key === undefined) this.#held.clear();
    else this.#held.delete(key);
  }

  zoom(at: number, factor: number): void {
    this.#way = null;
    this.#viewport.look(zoomSpan(this.#viewport.span, at, factor, this.#viewport.limits));
  }

  pan(by: number): void {
    this.#way = null;
    this.#viewport.look(moveSpan(this.#viewport.span, by, this.#viewport.limits));
  }

  /** The target span of the motion, else the current one. */
  get target(): Span {
    return this.#way?.to ?? this.#viewport.span;
  }

  /** Advances the motion to a time; returns whether it continues. */
  step(now: number): boolean {
    const seconds = this.#last === null ? 0.016 : Math.min((now - this.#last) / 1000, 0.1);
    const moving = this.#stepWay(now) || this.#stepHeld(seconds);
    this.#last = moving ? now : null;
    return moving;
  }

  #stepWay(now: number): boolean {
    if (this.#way === null) return false;
    const way = this.#way;
    way.since ??= now;
    const part = Math.min((now - way.since) / WAY_MS, 1);
    this.#viewport.look(interpolateSpan(way.from, way.to, 1 - (1 - part) ** 3));
    if (part >= 1) this.#way = null;
    return part < 1;
  }

  #stepHeld(seconds: number): boolean {
    if (this.#held.size === 0) return false;
    const { span, limits } = this.#viewport;
    const length = span.to - span.from;
    const pans = Number(this.#held.has("right")) - Number(this.#held.has("left"));
    const zooms = Number(this.#held.has("out")) - Number(this.#held.has("in"));
    const panned = moveSpan(span, pans * length * PAN_SPEED * seconds, limits);
    const at = panned.from + (panned.to - panned.from) * this.pointer;
    this.#viewport.look(zoomSpan(panned, at, ZOOM_SPEED ** (zooms * seconds), limits));
    return true;
  }
}
