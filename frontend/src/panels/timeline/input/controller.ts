// The timeline's controller: handles selection, navigation and search, and connects canvas, URL and
// data requests.

import type { Data, Page } from "../../../data/api.ts";
import { padSpan } from "../../../draw/span.ts";
import type { Span } from "../../../draw/span.ts";
import { change } from "../../../route.ts";
import { SameCollectives } from "../tracks/multi-rank.ts";
import { firstSource, isTrace, ownId, placeOfId, shownFlow, shownLink, shownSlice, shownTime } from "../tracks/sources.ts";
import type { Source } from "../tracks/sources.ts";
import { areaText, readArea, readSpan } from "./url-parameters.ts";
import { toggledText, parseToggled, toggleKey } from "../tracks/layout.ts";
import { ARRANGEMENT_WORDS, arrangementWords, readArrangement } from "../tracks/arrangement.ts";
import type { Arrangement } from "../tracks/arrangement.ts";
import { Moments, closeMoment, restoreMoment } from "./jumps.ts";
import { adjacentSlice, sliceOfId } from "./nearby.ts";
import type { Picture } from "../drawing/picture.ts";
import { restoreReference } from "./reference.ts";
import type { Selected } from "./reference.ts";
import { flowsOf, launchedWork, linksOf, sliceOfPage } from "./relations.ts";
import type { LaunchedWork, Link } from "./relations.ts";
import type { Area, Slice } from "../drawing/viewport.ts";
import type { PanelProps } from "../../panel.ts";

/** Details of the chosen slice, or the error. */
export interface SliceAnswer {
  page: Page | null;
  links: Link[];
  /** The device work that it launched. */
  work: LaunchedWork | null;
  error: string | null;
}

const NOTHING: SliceAnswer = { page: null, links: [], work: null, error: null };
const WRITE_MS = 250;
/** Attempts to find a slice of the URL in the loaded tiles. */
const TURNS = 12;

interface Given {
  data: Data;
  sources: readonly Source[];
  picture: Picture;
  views: PanelProps["views"];
  /** An option of the view. */
  rows: { lanes?: "name" };
}

export class TimelineController {
  readonly data: Data;
  readonly trace: string;
  /** What the timeline shows, the first trace first. */
  readonly sources: readonly Source[];
  readonly twins = new SameCollectives();
  readonly moments: Moments;
  readonly picture: Picture;
  told: SliceAnswer = NOTHING;
  /** What selections are compared with. */
  reference: Selected | null = null;
  /** Whether dragging selects a time span instead of panning. */
  marking = false;
  /** The last action as text, for screen readers. */
  said = "";
  /** Called when elements around the canvas must be redrawn. */
  changed: () => void = () => {};
  readonly #given: Given;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #written: Record<string, string | undefined> = {};
  #at = -1;
  #seen: Span = { from: 0, to: 0 };

  constructor(given: Given) {
    this.data = given.data;
    this.moments = new Moments(given.views);
    this.sources = given.sources;
    this.trace = this.of(0).trace;
    const { picture } = (this.#given = given);
    this.picture = picture;
    picture.follow(() => this.#moved());
  }

  /** The source that a slice is of. */
  of(id: number): Source {
    const place = placeOfId(id);
    return this.sources.find(({ at }) => at === place) ?? this.sources[0] ?? firstSource("");
  }

  /** A slice of a source, with ids and times of the timeline. */
  shown(id: number, slice: Slice): Slice {
    return shownSlice(this.of(id), slice);
  }

  /** Whether there are several traces. */
  get isJoint(): boolean {
    return this.sources.filter(isTrace).length > 1;
  }

  /** A slice, and loaded slices of the same collective on other ranks. */
  joined(slice: Slice | null): readonly Slice[] {
    if (slice === null || slice.id < 0) return [];
    const others = this.twins.of(slice.id).map((id) => sliceOfId(this.picture, id)).filter((other) => other !== null);
    return others.length === 0 ? [] : [slice, ...others];
  }

  /** Selects a slice, or none if null; adds an entry to the browser's history. */
  select(slice: Slice | null, { show = true, write = true } = {}): void {
    if (slice !== null && slice.id < 0) {
      this.picture.motion.go(padSpan({ from: slice.start, to: slice.end }, 0.1, this.picture.viewport.limits));
      this.picture.redraw();
      return;
    }
    const same = slice?.id === this.picture.chosen.selected?.id;
    this.picture.choose({ selected: slice, twins: this.joined(slice), ...(same ? {} : { flows: [] }) });
    if (slice !== null && show) this.picture.show(slice);
    if (write) this.write({ slice: slice === null ? undefined : String(slice.id) }, false);
    if (!same) {
      this.told = NOTHING;
      if (slice !== null) void this.#tell(slice.id);
    }
    this.said = slice === null ? "nothing is selected" : spoken(slice);
    this.changed();
  }

  /** Selects a slice by its id. */
  async open(id: number, options: { show?: boolean; zoom?: boolean; write?: boolean } = {}): Promise<void> {
    const page = await this.#tell(id);
    if (this.#at !== id) return;
    const found = page === null ? null : sliceOfPage(page);
    const slice = page === null ? await this.#atHand(id) : found && this.picture.placed(this.shown(id, found));
    if (slice === null) return;
    const { told } = this;
    this.picture.choose({ selected: slice, twins: this.joined(slice), flows: this.picture.chosen.flows });
    this.told = told;
    if (options.show !== false) this.picture.show(slice, { zoom: options.zoom ?? false });
    if (options.write !== false) this.write({ slice: String(id) }, false);
    this.said = spoken(slice);
    this.changed();
  }

  async #tell(id: number): Promise<Page | null> {
    this.#at = id;
    try {
      const [page, flows] = await Promise.all([
        this.facts(id),
        this.of(id).query === undefined ? this.#flows(id) : [],
      ]);
      if (this.#at !== id) return null;
      const of = this.of(id).query === undefined ? this.of(id) : this.of(0); // a query links to slices of its trace
      const links = linksOf(page).map((link) => shownLink(of, link));
      this.told = { page, links, work: launchedWork(page, links), error: null };
      this.picture.choose({ flows });
      return page;
    } catch (error) {
      if (this.#at !== id) return null;
      this.told = { ...NOTHING, error: error instanceof Error ? error.message : String(error) };
      return null;
    } finally {
      this.changed();
    }
  }

  /** Shows a slice from the loaded tiles, if no details are available. */
  async #atHand(id: number): Promise<Slice | null> {
    for (let turns = 0; turns < TURNS; turns++) {
      const slice = sliceOfId(this.picture, id);
      if (slice !== null || this.#at !== id) return slice;
      await new Promise((done) => setTimeout(done, WRITE_MS));
    }
    return null;
  }

  /** What is known of a slice, by the clock of its source. */
  facts(id: number): Promise<Page> {
    const { trace, query } = this.of(id);
    if (query === undefined) return this.data.page(trace, "slice", { id: ownId(id) }, {});
    return this.data.queryTrack(trace, query, { row: ownId(id) }, {});
  }

  async #flows(id: number) {
    const options = { selected: ownId(id), start: 0, end: 1, pixels: 64, tracks: "counters", ...this.#given.rows };
    const where = [{ column: "kind", op: "is" as const, value: "flow" }];
    const page = await this.data.page(this.of(id).trace, "timeline", options, { where });
    return flowsOf(page, ownId(id)).map((flow) => shownFlow(this.of(id), flow));
  }

  /** Goes to a related slice. */
  follow(key: string): void {
    const { selected } = this.picture.chosen;
    const link = this.told.links.find((known) => known.key === key);
    if (selected === null) return;
    if (link) {
      void this.open(link.slice);
      return;
    }
    const other = this.told.error === null ? null : adjacentSlice(this.picture, selected, key);
    if (other !== null) this.select(other);
    else if (this.told.page !== null || this.told.error !== null) {
      this.said = `there is no ${key} slice`;
      this.changed();
    }
  }

  mark(area: Area | null): void {
    this.picture.choose({ area });
    this.write({ area: area === null ? undefined : areaText(area) }, true);
    this.changed();
  }

  /** Selects the time of the chosen slice, else all visible time. */
  markSeen(): void {
    const { selected, area } = this.picture.chosen;
    const { span } = this.picture.viewport;
    if (area !== null) this.mark(null);
    else if (selected !== null) this.mark({ from: selected.start, to: selected.end, tracks: null });
    else this.mark({ from: Math.round(span.from), to: Math.round(span.to), tracks: null });
  }

  find(text: string): void {
    this.picture.choose({ find: text.trim() === "" ? "" : text }); // as typed: the field shows it
    this.write({ find: text.trim() || undefined }, true);
    this.changed();
  }

  turn(key: string): void {
    this.picture.turn(toggleKey(this.picture.turned, key));
    this.write({ fold: toggledText(this.picture.turned) }, true);
    this.changed();
  }

  /** Arranges the tracks; also as it was before, by going back. */
  arrange(arrangement: Arrangement, { replace = false } = {}): void {
    this.picture.arrange(arrangement);
    this.write(arrangementWords(arrangement), replace);
    this.changed();
  }

  /** Zooms to the chosen slice, else to the whole trace. */
  fit(): void {
    const { selected, area } = this.picture.chosen;
    const { viewport, motion } = this.picture;
    const target = selected ? { from: selected.start, to: selected.end } : area;
    motion.go(target === null ? viewport.limits : padSpan(target, 0.08, viewport.limits));
    this.picture.redraw();
  }

  /** Zooms to the chosen slice together with the device work that it launched. */
  fitWork(): void {
    const { selected } = this.picture.chosen;
    const { work } = this.told;
    if (selected === null || work === null) return;
    const of = this.of(selected.id);
    const [begin, end] = [shownTime(of, work.begin), shownTime(of, work.end)];
    const span = { from: Math.min(selected.start, begin), to: Math.max(selected.end, end) };
    this.picture.motion.go(padSpan(span, 0.08, this.picture.viewport.limits));
    this.picture.redraw();
  }

  whole(): void {
    this.picture.motion.go(this.picture.viewport.limits);
    this.picture.redraw();
  }

  /** Closes the moment, the time span, the slice or the search. */
  close(): void {
    const { area, selected, find } = this.picture.chosen;
    if (this.moments.shown !== null || this.moments.lacks !== null) closeMoment(this);
    else if (area !== null) this.mark(null);
    else if (selected !== null) this.select(null);
    else if (find !== "") this.find("");
  }

  /** Writes the visible span to the URL once the motion has stopped. */
  #moved(): void {
    const { from, to } = this.picture.motion.target;
    if (from === this.#seen.from && to === this.#seen.to) return;
    this.#seen = { from, to };
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      const { limits } = this.picture.viewport;
      const isWhole = from <= limits.from && to >= limits.to;
      const words = isWhole
        ? { from: undefined, to: undefined }
        : { from: String(Math.floor(from)), to: String(Math.ceil(to)) };
      this.write(words, true);
    }, WRITE_MS);
  }

  /** Says something to screen readers. */
  say(said: string): void {
    this.said = said;
    this.changed();
  }

  write(words: Record<string, string | undefined>, replace = true): void {
    const fresh = Object.entries(words).some(([name, value]) => this.#written[name] !== value);
    this.#written = { ...this.#written, ...words };
    if (fresh) change(words, { replace });
  }

  /** Applies a URL change by a link or the browser's history. */
  async obey(params: Readonly<Record<string, string>>): Promise<void> {
    const differs = (name: string) => params[name] !== this.#written[name];
    const first = Object.keys(this.#written).length === 0;
    const [moves, slice, area, find, fold] = [
      differs("from") || differs("to"), differs("slice"), differs("area"), differs("find"), differs("fold"),
    ];
    const [arranges, at, compares] = [ARRANGEMENT_WORDS.some(differs), differs("at"), differs("compare")];
    const { from, to } = params;
    this.#written = { ...params };
    if (arranges) this.picture.arrange(readArrangement(params));
    if (fold) this.picture.turn(parseToggled(params["fold"]));
    if (find) this.picture.choose({ find: params["find"] ?? "" });
    if (area) this.picture.choose({ area: readArea(params["area"]) });
    const span = readSpan(from, to);
    if (moves && span !== null) this.picture.viewport.look(span);
    else if (moves && !first) this.picture.viewport.look(this.picture.viewport.limits);
    if (compares) void restoreReference(this, params["compare"]);
    if (at) void restoreMoment(this, params["at"]);
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
