// A slice or a stretch of time that others are compared with, as the address has it: `compare=`.

import { cellReader } from "../tiles/cell-reader.ts";
import type { Area, Slice } from "../drawing/viewport.ts";
import type { TimelineController } from "./controller.ts";
import { sliceOfPage } from "./relations.ts";
import { areaText, readArea } from "./url-parameters.ts";

export interface Selected {
  /** As the address has it: the id of a slice, or a stretch of time. */
  key: string;
  name: string;
  /** The source that it is of; null for a stretch of time, which all share. */
  source: number | null;
  from: number;
  to: number;
  /** Null for a stretch of time. */
  slice: Slice | null;
}

/** What is selected: the marked area, else the slice. */
export function selectedOf(controller: TimelineController): Selected | null {
  const { area, selected } = controller.picture.chosen;
  if (area !== null) return ofArea(area);
  if (selected === null || selected.id < 0) return null;
  return { key: String(selected.id), name: selected.name, source: controller.of(selected.id).at, from: selected.start, to: selected.end, slice: selected };
}

function ofArea({ from, to }: Area): Selected {
  return { key: areaText({ from, to, tracks: null }), name: "marked area", source: null, from, to, slice: null };
}

function put(controller: TimelineController, kept: Selected | null): void {
  controller.reference = kept;
  controller.picture.choose({ reference: kept?.slice ?? null });
}

/** Keeps what is selected, to compare the next selections with it; or nothing. */
export function keepReference(controller: TimelineController, kept: Selected | null): void {
  put(controller, kept);
  controller.write({ compare: kept?.key }, false);
  controller.say(kept === null ? "nothing is compared" : `the next selections are compared with ${kept.name.slice(0, 200)}`);
}

/** Loads what the address says. */
export async function restoreReference(controller: TimelineController, text: string | undefined): Promise<void> {
  const area = readArea(text);
  const id = text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : null;
  put(controller, area === null ? null : ofArea(area));
  if (id === null) return;
  try {
    const page = await controller.facts(id);
    const slice = sliceOfPage(page);
    if (slice === null || Number.isNaN(cellReader(page).number("start", 0))) return;
    const shown = controller.picture.placed(controller.shown(id, slice));
    put(controller, { key: String(id), name: slice.name, source: controller.of(id).at, from: shown.start, to: shown.end, slice: shown });
  } catch (error) {
    controller.say(error instanceof Error ? error.message : String(error));
  }
  controller.changed();
}
