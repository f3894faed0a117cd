// What the reader does: choosing, following, marking, searching. It joins the picture, the address
// and the answers that have to be asked for.

import type { Data, Page } from "../../api.ts";
import { around } from "../../draw/span.ts";
import type { Span } from "../../draw/span.ts";
import { change } from "../../route.ts";
import { lone, ownId, placeOfId, shownFlow, shownLink, shownSlice, Twins } from "./besides.ts";
import type { Beside } from "./besides.ts";
import { areaText, readArea, readSpan } from "./address.ts";
import { writtenTurned, readTurned, turnedWith } from "./layout.ts";
import { beside, nextMatch, sliceOfId } from "./nearby.ts";
import type { Picture } from "./picture.ts";
import { reader } from "./reading.ts";
import { flowsOf, linksOf, sliceOfPage } from "./relations.ts";
import type { Link } from "./relations.ts";
import { RULER, stepBeside } from "./sight.ts";
import type { Area, Slice, Step } from "./sight.ts";

/** What is told of the chosen slice: the page, or why there is none. */
export interface Told {
  page: Page | null;
  links: Link[];
  error: string | null;
}

const NOTHING: Told = { page: null, links: [], error: null };
const WRITE_MS = 250;
/** So often the tiles are looked through for a slice that the address names. */
const TURNS = 12;

export class Desk {
  readonly data: Data;
  readonly trace: string;
  /** The ranks of the picture, the shown trace first. */
  readonly besides: readonly Beside[];
  readonly twins = new Twins();
  readonly picture: Picture;
  told: Told = NOTHING;
  /** Whether dragging marks an area in place of moving the picture. */
  marking = false;
  /** What happened last, for who cannot see it. */
  said = "";
  /** Called when something beside the canvas has to be drawn anew. */
  changed: () => void = () => {};
  #timer: ReturnType<typeof setTimeout> | undefined;
  #written: Record<string, string | undefined> = {};
  #at = -1;
  #seen: Span = { from: 0, to: 0 };

  constructor(data: Data, besides: readonly Beside[], picture: Picture) {
    this.data = data;
    this.besides = besides;
    this.trace = this.of(0).trace;
    this.picture = picture;
    picture.follow(() => this.#moved());
  }

  /** The rank of the picture that a slice is of. */
  of(id: number): Beside {
    return this.besides[placeOfId(id)] ?? this.besides[0] ?? lone("");
  }

  /** A slice and what is the same collective on the other ranks, as far as the tiles hold them. */
  joined(slice: Slice | null): readonly Slice[] {
    if (slice === null || slice.id < 0) return [];
    const others = this.twins.of(slice.id).map((id) => sliceOfId(this.picture, id)).filter((other) => other !== null);
    return others.length === 0 ? [] : [slice, ...others];
  }

  know(steps: readonly Step[]): void {
    this.picture.steps = steps;
    this.picture.redraw();
  }

  /** Chooses a slice; null none. A choice is a step of the browser's history. */
  select(slice: Slice | null, { show = true, write = true } = {}): void {
    if (slice !== null && slice.id < 0) {
      this.picture.motion.go(around({ from: slice.start, to: slice.end }, 0.1, this.picture.sight.limits));
      this.picture.redraw();
      return;
    }
    const same = slice?.id === this.picture.chosen.selected?.id;
    this.picture.choose({ selected: slice, twins: this.joined(slice), ...(same ? {} : { flows: [] }) });
    if (slice !== null && show) this.picture.show(slice);
    if (write) this.#write({ slice: slice === null ? undefined : String(slice.id) }, false);
    if (!same) {
      this.told = NOTHING;
      if (slice !== null) void this.#tell(slice.id);
    }
    this.said = slice === null ? "nothing is selected" : spoken(slice);
    this.changed();
  }

  /** Chooses a slice of which only the number is known. */
  async open(id: number, options: { show?: boolean; zoom?: boolean; write?: boolean } = {}): Promise<void> {
    const page = await this.#tell(id);
    if (this.#at !== id) return;
    const found = page === null ? null : sliceOfPage(page);
    const slice = page === null ? await this.#atHand(id) : found && shownSlice(this.of(id), found);
    if (slice === null) return;
    const { told } = this;
    this.picture.choose({ selected: slice, twins: this.joined(slice), flows: this.picture.chosen.flows });
    this.told = told;
    if (options.show !== false) this.picture.show(slice, { zoom: options.zoom ?? false });
    if (options.write !== false) this.#write({ slice: String(id) }, false);
    this.said = spoken(slice);
    this.changed();
  }

  async #tell(id: number): Promise<Page | null> {
    this.#at = id;
    try {
      const [page, flows] = await Promise.all([
        this.data.page(this.of(id).trace, "slice", { id: ownId(id) }, {}),
        this.#flows(id),
      ]);
      if (this.#at !== id) return null;
      const links = linksOf(page).map((link) => shownLink(this.of(id), link));
      this.told = { page, links, error: null };
      this.picture.choose({ flows });
      return page;
    } catch (error) {
      if (this.#at !== id) return null;
      this.told = { page: null, links: [], error: error instanceof Error ? error.message : String(error) };
      return null;
    } finally {
      this.changed();
    }
  }

  /** A slice that nobody can be asked about: as the tiles tell it, once they are here. */
  async #atHand(id: number): Promise<Slice | null> {
    for (let turns = 0; turns < TURNS; turns++) {
      const slice = sliceOfId(this.picture, id);
      if (slice !== null || this.#at !== id) return slice;
      await new Promise((done) => setTimeout(done, WRITE_MS));
    }
    return null;
  }

  async #flows(id: number) {
    const options = { selected: ownId(id), start: 0, end: 1, pixels: 64, tracks: "counters" };
    const where = [{ column: "kind", op: "is" as const, value: "flow" }];
    const page = await this.data.page(this.of(id).trace, "timeline", options, { where });
    return flowsOf(page, ownId(id)).map((flow) => shownFlow(this.of(id), flow));
  }

  /** Goes to what the chosen slice hangs together with. */
  follow(key: string): void {
    const { selected } = this.picture.chosen;
    const link = this.told.links.find((known) => known.key === key);
    if (selected === null) return;
    if (link) {
      void this.open(link.slice);
      return;
    }
    const other = this.told.error === null ? null : beside(this.picture, selected, key);
    if (other !== null) this.select(other);
    else if (this.told.page !== null || this.told.error !== null) {
      this.said = `there is no ${key} slice`;
      this.changed();
    }
  }

  /** The slice that is drawn nearest to the middle of the picture. */
  selectMiddle(): void {
    const { width, height } = this.picture.sight;
    for (let y = RULER; y < height; y += 8) {
      for (let away = 0; away < width / 2; away += 8) {
        const slice = this.picture.hit(width / 2 + away, y) ?? this.picture.hit(width / 2 - away, y);
        if (slice !== null && slice.id >= 0) {
          this.select(slice);
          return;
        }
      }
    }
  }

  /** Goes to the step after or before that in the middle of the picture. */
  step(by: 1 | -1): void {
    const { sight, steps, motion } = this.picture;
    const step = stepBeside(steps, sight.span, by);
    if (step === undefined) return;
    motion.go(around({ from: step.start, to: step.end }, 0.03, sight.limits));
    this.said = `step ${step.number}`;
    this.changed();
  }

  /** Goes to the next or previous slice that the search finds. */
  async match(by: 1 | -1): Promise<void> {
    const { find, selected } = this.picture.chosen;
    if (find === "") return;
    const { from } = this.picture.sight.span;
    const options = { text: find, by: "slice", way: by > 0 ? "after" : "before", slice: selected === null || placeOfId(selected.id) > 0 ? -1 : selected.id, start: Math.round(from), top: 1 };
    try {
      const page = await this.data.page(this.trace, "matches", options, {});
      const id = firstId(page);
      if (id !== null) await this.open(id);
      this.said = id === null ? `no ${by > 0 ? "later" : "earlier"} slice has ${find}` : this.said;
    } catch (error) {
      const slice = nextMatch(this.picture, selected, by, (name) => this.picture.isFound(name));
      if (slice !== null) this.select(slice);
      else this.said = error instanceof Error ? error.message : String(error);
    }
    this.changed();
  }

  mark(area: Area | null): void {
    this.picture.choose({ area });
    this.#write({ area: area === null ? undefined : areaText(area) }, true);
    this.changed();
  }

  /** Marks the chosen slice's time, else all that is seen. */
  markSeen(): void {
    const { selected, area } = this.picture.chosen;
    const { span } = this.picture.sight;
    if (area !== null) this.mark(null);
    else if (selected !== null) this.mark({ from: selected.start, to: selected.end, tracks: null });
    else this.mark({ from: Math.round(span.from), to: Math.round(span.to), tracks: null });
  }

  find(text: string): void {
    this.picture.choose({ find: text.trim().toLowerCase() });
    this.#write({ find: text.trim() || undefined }, true);
    this.changed();
  }

  turn(key: string): void {
    this.picture.turn(turnedWith(this.picture.turned, key));
    this.#write({ fold: writtenTurned(this.picture.turned) }, true);
    this.changed();
  }

  /** The chosen slice, else the whole trace. */
  fit(): void {
    const { selected, area } = this.picture.chosen;
    const { sight, motion } = this.picture;
    const target = selected ? { from: selected.start, to: selected.end } : area;
    motion.go(target === null ? sight.limits : around(target, 0.08, sight.limits));
    this.picture.redraw();
  }

  whole(): void {
    this.picture.motion.go(this.picture.sight.limits);
    this.picture.redraw();
  }

  /** Closes what was opened last: the area, the slice, the search. */
  close(): void {
    const { area, selected, find } = this.picture.chosen;
    if (area !== null) this.mark(null);
    else if (selected !== null) this.select(null);
    else if (find !== "") this.find("");
  }

  /** Writes where the picture is, once it has come to rest. */
  #moved(): void {
    const { from, to } = this.picture.motion.target;
    if (from === this.#seen.from && to === this.#seen.to) return;
    this.#seen = { from, to };
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      const { limits } = this.picture.sight;
      const isWhole = from <= limits.from && to >= limits.to;
      const words = isWhole
        ? { from: undefined, to: undefined }
        : { from: String(Math.floor(from)), to: String(Math.ceil(to)) };
      this.#write(words, true);
    }, WRITE_MS);
  }

  #write(words: Record<string, string | undefined>, replace: boolean): void {
    const fresh = Object.entries(words).some(([name, value]) => this.#written[name] !== value);
    this.#written = { ...this.#written, ...words };
    if (fresh) change(words, { replace });
  }

  /** Follows an address that somebody else wrote: a link, or the browser's way back. */
  async obey(params: Readonly<Record<string, string>>): Promise<void> {
    const differs = (name: string) => params[name] !== this.#written[name];
    const first = Object.keys(this.#written).length === 0;
    const [moves, slice, area, find, fold] = [
      differs("from") || differs("to"), differs("slice"), differs("area"), differs("find"), differs("fold"),
    ];
    const { from, to } = params;
    this.#written = { from, to, slice: params["slice"], area: params["area"], find: params["find"], fold: params["fold"] };
    if (fold) this.picture.turn(readTurned(params["fold"]));
    if (find) this.picture.choose({ find: (params["find"] ?? "").toLowerCase() });
    if (area) this.picture.choose({ area: readArea(params["area"]) });
    const span = readSpan(from, to);
    if (moves && span !== null) this.picture.sight.look(span);
    else if (moves && !first) this.picture.sight.look(this.picture.sight.limits);
    if (slice) await this.#obeySlice(params["slice"], span === null);
    this.picture.redraw();
    this.changed();
  }

  async #obeySlice(text: string | undefined, show: boolean): Promise<void> {
    const id = text === undefined ? Number.NaN : Number(text);
    if (!Number.isInteger(id) || id < 0) {
      this.select(null, { write: false });
      return;
    }
    await this.open(id, { show, write: false });
    const { selected } = this.picture.chosen;
    if (!show && selected !== null) this.picture.reveal(selected.track, selected.row);
  }
}

function spoken(slice: Slice): string {
  return `selected ${slice.name.slice(0, 200)}`;
}

/** Where the next of some slices is that a search found, from a page ordered by start. */
export function firstId(page: Page): number | null {
  return page.rows === 0 ? null : reader(page).number("id", 0);
}
