// Goes from slice to slice that the search finds.

import { cellReader } from "../tiles/cell-reader.ts";
import { placeOfId } from "../tracks/sources.ts";
import type { TimelineController } from "./controller.ts";
import { nextMatch } from "./nearby.ts";

/** Goes to the next or previous slice that the search finds. */
export async function goToMatch(controller: TimelineController, by: 1 | -1): Promise<void> {
  const { picture } = controller;
  const { selected } = picture.chosen;
  const find = picture.chosen.find.trim();
  if (find === "") return;
  const slice = selected === null || placeOfId(selected.id) > 0 ? -1 : selected.id;
  const way = by > 0 ? "after" : "before";
  const options = { text: find, by: "slice", way, slice, start: Math.round(picture.viewport.span.from), top: 1 };
  try {
    const page = await controller.data.page(controller.trace, "matches", options, {});
    if (page.rows > 0) await controller.open(cellReader(page).number("id", 0));
    else controller.say(`no ${by > 0 ? "later" : "earlier"} slice has ${find}`);
  } catch (error) {
    const next = nextMatch(picture, selected, by, (name) => picture.isFound(name));
    if (next !== null) controller.select(next);
    else controller.say(error instanceof Error ? error.message : String(error));
  }
}
