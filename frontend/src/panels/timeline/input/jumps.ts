// Goes to steps, and to moments worth a look: gaps, waits, slow steps.

import type { Data, ViewSpec } from "../../../data/api.ts";
import { padSpan } from "../../../draw/span.ts";
import { stepBeside } from "../drawing/viewport.ts";
import type { TimelineController } from "./controller.ts";
import { SOURCES, loadMoments, momentBeside, momentText, readMoment } from "./moments.ts";
import type { Moment, MomentKind } from "./moments.ts";

/** Goes to the next or previous step. */
export function goToStep(controller: TimelineController, by: 1 | -1): void {
  const { viewport, steps, motion } = controller.picture;
  const step = stepBeside(steps, viewport.span, by);
  if (step === undefined) return;
  motion.go(padSpan({ from: step.start, to: step.end }, 0.03, viewport.limits));
  controller.say(`step ${step.number}`);
}

/** The moment that the reader went to, and those of each kind once they are loaded. */
export class Moments {
  shown: Moment | null = null;
  /** What could not be found, in words. */
  lacks: string | null = null;
  kind: MomentKind = "gap";
  readonly #views: ReadonlyMap<string, ViewSpec>;
  readonly #loaded = new Map<MomentKind, Promise<Moment[]>>();

  constructor(views: ReadonlyMap<string, ViewSpec>) {
    this.#views = views;
  }

  /** Its place among those of its kind, from 1. */
  place: [number, number] = [0, 0];

  load(data: Data, trace: string, kind: MomentKind): Promise<Moment[]> {
    const known = this.#loaded.get(kind) ?? loadMoments(data, trace, this.#views, kind);
    this.#loaded.set(kind, known);
    known.catch(() => this.#loaded.delete(kind)); // it is asked again
    return known;
  }
}

/** Goes to the next or previous moment of a kind. */
export async function goToMoment(controller: TimelineController, kind: MomentKind, by: 1 | -1): Promise<void> {
  const { moments, picture } = controller;
  moments.kind = kind;
  await attempt(controller, kind, async (known) => {
    const from = moments.shown?.kind === kind ? moments.shown : null;
    const found = momentBeside(known, from, picture.motion.target, by);
    if (found === undefined) {
      moments.lacks = known.length === 0 ? `There is no ${SOURCES[kind].title} here.` : `There is no ${by > 0 ? "later" : "earlier"} ${SOURCES[kind].title}.`;
      return;
    }
    put(controller, known, found);
    controller.write({ at: momentText(found) });
    picture.motion.go(padSpan(found, kind === "slow" ? 0.03 : 0.6, picture.viewport.limits));
    if (found.slice !== null) await controller.open(found.slice, { show: false });
  });
}

/** Shows again what the address tells; the rest of the address tells where it is. */
export async function restoreMoment(controller: TimelineController, text: string | undefined): Promise<void> {
  const asked = readMoment(text);
  if (asked === null) {
    forget(controller);
    return;
  }
  controller.moments.kind = asked.kind;
  await attempt(controller, asked.kind, (known) => {
    const found = known.find((one) => Math.round(one.from) === asked.from);
    if (found !== undefined) put(controller, known, found);
  });
}

export function closeMoment(controller: TimelineController): void {
  forget(controller);
  controller.write({ at: undefined });
}

function forget(controller: TimelineController): void {
  Object.assign(controller.moments, { shown: null, lacks: null });
  controller.picture.choose({ moment: null });
  controller.changed();
}

function put({ moments, picture }: TimelineController, known: readonly Moment[], found: Moment): void {
  moments.shown = found;
  moments.place = [known.indexOf(found) + 1, known.length];
  picture.choose({ moment: found });
}

async function attempt(controller: TimelineController, kind: MomentKind, does: (known: Moment[]) => unknown): Promise<void> {
  const { moments } = controller;
  moments.lacks = null;
  try {
    await does(await moments.load(controller.data, controller.trace, kind));
  } catch (error) {
    moments.lacks = error instanceof Error ? error.message : String(error);
  }
  controller.say(moments.lacks ?? moments.shown?.reason ?? "");
}
