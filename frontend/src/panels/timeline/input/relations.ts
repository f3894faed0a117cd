// The slices related to a slice, from the views `slice` and `timeline`.

import type { Page } from "../../../data/api.ts";
import { cellReader } from "../tiles/cell-reader.ts";
import type { Flow, Slice } from "../drawing/viewport.ts";

/** Another slice that the chosen one leads to. */
export interface Link {
  key: string;
  name: string;
  slice: number;
  start: number;
  duration: number;
}

export const LINKS = "links";

export function linksOf(page: Page): Link[] {
  const read = cellReader(page);
  const links: Link[] = [];
  for (let row = 0; row < page.rows; row++) {
    if (read.text("group", row) !== LINKS) continue;
    links.push({
      key: read.text("key", row),
      name: read.text("value", row),
      slice: read.number("slice", row),
      start: read.number("start", row),
      duration: read.number("duration", row),
    });
  }
  return links;
}

/** The slice from the first row of the view. */
export function sliceOfPage(page: Page): Slice | null {
  if (page.rows === 0) return null;
  const read = cellReader(page);
  const of = (key: string) => {
    for (let row = 0; row < page.rows; row++) {
      if (read.text("group", row) === "slice" && read.text("key", row) === key) return read.text("value", row);
    }
    return "";
  };
  const start = read.number("start", 0);
  return {
    id: read.number("slice", 0),
    name: read.text("value", 0),
    category: of("category"),
    track: read.number("track", 0),
    row: read.number("row", 0),
    start,
    end: start + (read.number("duration", 0) || 0),
    self: of("self") === "" ? Number.NaN : Number(of("self")),
    count: 1,
  };
}

/** The flows of a slice; of a page that was made for others too, those that touch it. */
export function flowsOf(page: Page, selected: number): Flow[] {
  const read = cellReader(page);
  const flows: Flow[] = [];
  for (let row = 0; row < page.rows; row++) {
    if (read.text("kind", row) !== "flow") continue;
    flows.push({
      name: read.text("name", row),
      id: read.number("id", row),
      start: read.number("start", row),
      track: read.number("track", row),
      row: read.number("row", row),
      to: read.number("to", row),
      toTime: read.number("to_time", row),
      toTrack: read.number("to_track", row),
      toRow: read.number("to_row", row),
    });
  }
  // an operator has the flows of the calls below it, which do not touch it themselves
  if (page.options["selected"] === selected) return flows;
  return flows.filter((flow) => flow.id === selected || flow.to === selected);
}

/** The device work that a slice launched, or calls below it. */
export interface LaunchedWork {
  count: number;
  busy: number;
  begin: number;
  end: number;
  /** The longest of it, in order of time. */
  links: Link[];
}

export const WORK = "device work";

export function launchedWork(page: Page, links: readonly Link[]): LaunchedWork | null {
  const read = cellReader(page);
  const found = new Map<string, number>();
  for (let row = 0; row < page.rows; row++) {
    if (read.text("group", row) === WORK) found.set(read.text("key", row), Number(read.text("value", row)));
  }
  const count = found.get("count");
  if (count === undefined) return null;
  const of = (key: string) => found.get(key) ?? Number.NaN;
  return { count, busy: of("busy"), begin: of("begin"), end: of("end"), links: links.filter((link) => link.key === WORK) };
}
