// Shows the slices of a number of the advice, which the address names, and goes from one to the next.

import { padSpan } from "../../../draw/span.ts";
import type { TimelineController } from "../input/controller.ts";
import type { Slice } from "../drawing/viewport.ts";
import { highlightedOf, placeBeside, wholeSpan } from "./places.ts";
import type { Highlighted } from "./places.ts";

/** What the address asks for, and how far it is. */
export class Highlights {
  /** The number that is asked for; null for none. */
  of: string | null = null;
  error: string | null = null;
  /** Index of the place that the reader went to; -1 for none. */
  at = -1;
}

/** Space beside a place that is gone to, as a share of its length. */
const ROOM = 0.6;

/** Loads and shows what the address names; `fits` says whether the picture may move. */
export async function obeyNumber(controller: TimelineController, of: string | undefined, fits: boolean): Promise<void> {
  const { picture, data, trace } = controller;
  const highlights = new Highlights();
  controller.highlights = highlights;
  picture.choose({ highlighted: null });
  highlights.of = of ?? null;
  controller.changed();
  if (of === undefined) return;
  try {
    const number = await data.numberSlices(trace, of);
    if (controller.highlights !== highlights) return;
    show(controller, highlightedOf(number, picture.names, (slice) => rowOfSlice(controller, slice)), fits);
  } catch (error) {
    highlights.error = error instanceof Error ? error.message : String(error);
  }
  if (controller.highlights !== highlights) return;
  controller.say(highlights.error ?? `${picture.chosen.highlighted?.number.text ?? ""} highlighted`);
}

function show(controller: TimelineController, highlighted: Highlighted, fits: boolean): void {
  const { picture } = controller;
  for (const [track, lanes] of highlighted.lanes) picture.reveal(track, lanes.length - 1);
  const [first] = highlighted.places.filter((place) => place.slice !== null);
  if (first?.slice) picture.reveal(first.slice.track, first.slice.row);
  const span = wholeSpan(highlighted);
  if (fits && span !== null) picture.viewport.look(padSpan(span, 0.03, picture.viewport.limits));
  picture.choose({ highlighted });
}

/** A slice on the row of its name, where rows are by name. */
function rowOfSlice({ picture }: TimelineController, slice: Slice): Slice {
  const track = picture.groups.flatMap((group) => group.tracks).find((one) => one.id === slice.track);
  const row = track?.names?.findIndex(({ name }) => name === slice.name) ?? -1;
  return row < 0 ? slice : { ...slice, row };
}

/** Goes to the next or previous slice of the number. */
export function goToHighlighted(controller: TimelineController, by: 1 | -1): void {
  const { picture, highlights } = controller;
  const { highlighted, selected } = picture.chosen;
  if (highlighted === null) return;
  const chosen = highlighted.places.findIndex(({ slice }) => slice !== null && slice.id === selected?.id);
  const found = placeBeside(highlighted, chosen < 0 ? highlights.at : chosen, picture.motion.target, by);
  const place = highlighted.places[found];
  if (place === undefined) {
    controller.say(`there is no ${by > 0 ? "later" : "earlier"} one`);
    return;
  }
  highlights.at = found;
  if (place.slice !== null) controller.select(place.slice);
  else {
    controller.select(null);
    picture.motion.go(padSpan(place, ROOM, picture.viewport.limits));
  }
  controller.changed();
}

export function fitHighlighted(controller: TimelineController): void {
  const { picture } = controller;
  const span = picture.chosen.highlighted && wholeSpan(picture.chosen.highlighted);
  if (span === null) return;
  picture.motion.go(padSpan(span, 0.03, picture.viewport.limits));
  picture.redraw();
}

export function closeHighlighted(controller: TimelineController): void {
  controller.write({ of: undefined }, false);
  void obeyNumber(controller, undefined, false);
}
