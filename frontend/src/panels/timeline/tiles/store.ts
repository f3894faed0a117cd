// Loads and caches tiles, and substitutes missing ones by other resolutions.

import type { Options, Page, Query, Values } from "../../../data/api.ts";
import type { Names } from "../drawing/names.ts";
import { COARSEST, optionsOf, partsOf, resolution, samplesOf, width } from "./tiles.ts";
import type { Part, Place, Samples } from "./tiles.ts";

export type Ask = (options: Options, query: Query) => Promise<Page>;

/** A part to load: of a track, or of all counters. */
export interface Wanted extends Place {
  track: number;
  depth: number;
}

/** All counters together, as if they were one track. */
export const COUNTERS = -1;
/** Requests of all sources that run at once: to send one takes up to a millisecond of a frame. */
const AT_ONCE = 4;
/** The most cached rows, of about 40 bytes each. */
const ROOM = 2_000_000;
const RETRY_MS = 4_000;

export const SLICE_COLUMNS: readonly string[] = [
  "kind", "track", "row", "start", "duration", "self", "name", "count", "category", "busy", "id",
];
export const COUNTER_COLUMNS: readonly string[] = [
  "kind", "name", "start", "duration", "value", "low", "high",
];
const ALL_ROWS = 400_000;

interface Tile extends Place {
  parts: Map<number, Part>;
  samples: Map<string, Samples> | null;
  size: number;
  used: number;
}

export interface AvailablePart extends Place {
  part: Part;
  /** The stretch of time that it tells about. */
  from: number;
  to: number;
}

export class Store {
  /** The last error message; null after a success. */
  error: string | null = null;
  /** ns per pixel of the report's tiles, if coarser than requested. */
  downsampled: number | null = null;
  #room = ROOM;
  #most = AT_ONCE;
  readonly #ask: Ask;
  readonly #names: Names;
  #changed: () => void = () => {};
  readonly #tiles = new Map<string, Tile>();
  readonly #levels = new Set<number>();
  readonly #onTheWay = new Map<string, number>();
  readonly #failed = new Map<string, number>();
  #wanted: readonly Wanted[] = [];
  #asked = 0;
  #size = 0;
  #time = 0;

  constructor(ask: Ask, names: Names) {
    this.#ask = ask;
    this.#names = names;
  }

  /** Shares the room for rows, and the requests, with others; `changed` is called when there is more to draw. */
  share(sources: number, changed: () => void): void {
    this.#room = ROOM / sources;
    this.#most = Math.max(1, Math.floor(AT_ONCE / sources));
    this.#changed = changed;
  }

  /** The number of loaded rows, and of running requests. */
  get state(): { rows: number; asked: number } {
    return { rows: this.#size, asked: this.#asked };
  }

  /** Loads missing parts in order of priority; cancels those no longer wanted. */
  want(wanted: readonly Wanted[]): void {
    this.#wanted = wanted;
    this.#time += 1;
    for (const one of wanted) {
      const tile = this.#tiles.get(keyOf(one));
      if (tile) tile.used = this.#time;
    }
    this.#work();
  }

  has(one: Wanted): boolean {
    const tile = this.#tiles.get(keyOf(one));
    if (!tile) return false;
    if (one.track === COUNTERS) return tile.samples !== null;
    const part = tile.parts.get(one.track);
    return part !== undefined && covers(part.depth, one.depth);
  }

  /** The loaded part of a track for a tile, else finer or coarser ones. */
  found(track: number, place: Place): AvailablePart[] {
    return this.#best(place, (tile) => {
      const part = tile.parts.get(track);
      const { level, number } = tile;
      const [from, to] = [number * width(level), (number + 1) * width(level)];
      return part === undefined ? null : { level, number, part, from, to };
    });
  }

  samples(name: string, place: Place): Samples[] {
    return this.#best(place, (tile) => tile.samples?.get(name) ?? (tile.samples ? NO_SAMPLES : null));
  }

  #best<T>(place: Place, read: (tile: Tile) => T | null): T[] {
    const own = this.#read(place, read);
    if (own !== null) return [own];
    const finer = [0, 1].map((half) =>
      this.#read({ level: place.level - 1, number: 2 * place.number + half }, read),
    );
    if (!finer.includes(null)) return finer as T[];
    for (let up = 1; place.level + up <= COARSEST; up++) {
      if (!this.#levels.has(place.level + up)) continue;
      const coarser = { level: place.level + up, number: Math.floor(place.number / 2 ** up) };
      const found = this.#read(coarser, read);
      if (found !== null) return [found];
    }
    return finer.filter((half) => half !== null);
  }

  #read<T>(place: Place, read: (tile: Tile) => T | null): T | null {
    const tile = this.#tiles.get(keyOf(place));
    return tile === undefined ? null : read(tile);
  }

  #work(): void {
    for (const batch of batches(this.#wanted, (one) => this.#isMissing(one))) {
      if (this.#asked >= this.#most) return;
      void this.#fetch(batch);
    }
  }

  #isMissing(one: Wanted): boolean {
    if (this.has(one)) return false;
    const coming = this.#onTheWay.get(partKey(one));
    if (coming !== undefined && covers(coming, one.depth)) return false;
    const failed = this.#failed.get(partKey(one));
    return failed === undefined || performance.now() - failed > RETRY_MS;
  }

  async #fetch(batch: readonly Wanted[]): Promise<void> {
    const [place] = batch;
    if (place === undefined) return;
    this.#asked += 1;
    for (const one of batch) this.#onTheWay.set(partKey(one), one.depth);
    const tracks = batch.map((one) => (one.track === COUNTERS ? "counters" : String(one.track)));
    const columns = place.track === COUNTERS ? COUNTER_COLUMNS : SLICE_COLUMNS;
    try {
      const page = await loadAllRows(this.#ask, optionsOf(place, tracks, place.depth), { columns });
      this.#keep(place, batch, page);
      this.error = null;
    } catch (error) {
      for (const one of batch) this.#failed.set(partKey(one), performance.now());
      this.error = error instanceof Error ? error.message : String(error);
    } finally {
      this.#asked -= 1;
      for (const one of batch) this.#onTheWay.delete(partKey(one));
    }
    this.#changed();
    this.#work();
  }

  #keep(place: Place, batch: readonly Wanted[], page: Page): void {
    const tile = this.#tileAt(place);
    const parts = partsOf(page, place, this.#names);
    for (const { track, depth } of batch) {
      if (track === COUNTERS) {
        tile.samples = samplesOf(page, place);
        this.#grow(tile, page.rows);
        continue;
      }
      const part = { ...(parts.get(track) ?? { lanes: [], marks: null, size: 0 }), depth };
      this.#grow(tile, part.size - (tile.parts.get(track)?.size ?? 0));
      tile.parts.set(track, part);
    }
    const told = resolution(page);
    this.downsampled = told !== null && told > 2 * 2 ** place.level ? told : null;
    this.#forget();
  }

  #tileAt(place: Place): Tile {
    const known = this.#tiles.get(keyOf(place));
    if (known) return known;
    const { level, number } = place;
    const tile = { level, number, parts: new Map(), samples: null, size: 0, used: this.#time };
    this.#tiles.set(keyOf(place), tile);
    this.#levels.add(level);
    return tile;
  }

  #grow(tile: Tile, by: number): void {
    tile.size += by;
    this.#size += by;
  }

  /** Removes the least recently used tiles. */
  #forget(): void {
    if (this.#size <= this.#room) return;
    const oldest = [...this.#tiles].sort(([, one], [, other]) => one.used - other.used);
    for (const [key, tile] of oldest) {
      if (this.#size <= this.#room * 0.8 || tile.used === this.#time) break;
      this.#tiles.delete(key);
      this.#size -= tile.size;
    }
  }
}

const NO_SAMPLES: Samples = {
  start: new Float64Array(),
  end: new Float64Array(),
  mean: new Float64Array(),
  low: new Float64Array(),
  high: new Float64Array(),
};

function keyOf({ level, number }: Place): string {
  return `${level}:${number}`;
}

function partKey(one: Wanted): string {
  return `${one.level}:${one.number}:${one.track}`;
}

function covers(held: number, asked: number): boolean {
  return held === 0 || (asked !== 0 && held >= asked);
}

/** Groups missing parts into one request per tile and depth; counters are separate. */
export function batches(
  wanted: readonly Wanted[],
  isMissing: (one: Wanted) => boolean,
): Wanted[][] {
  const found = new Map<string, Wanted[]>();
  for (const one of wanted) {
    if (!isMissing(one)) continue;
    const kind = one.track === COUNTERS ? "counters" : one.depth;
    const key = `${keyOf(one)}:${kind}`;
    const batch = found.get(key);
    if (batch) batch.push(one);
    else found.set(key, [one]);
  }
  return [...found.values()];
}

/** All rows of an answer, put together where they come in several pages. */
export async function loadAllRows(ask: Ask, options: Options, query: Query): Promise<Page> {
  let page = await ask(options, { ...query, rows: ALL_ROWS });
  while (page.from + page.rows < page.total && page.rows > 0) {
    const more = await ask(options, { ...query, rows: ALL_ROWS, from: page.from + page.rows });
    if (more.rows === 0) break;
    page = joined(page, more);
  }
  return page;
}

function joined(page: Page, more: Page): Page {
  const columns = Object.fromEntries(
    Object.entries(page.columns).map(([name, values]) => {
      const next = more.columns[name];
      return [name, next === undefined ? values : appended(values, next)];
    }),
  );
  return { ...page, rows: page.rows + more.rows, columns };
}

function appended(one: Values, other: Values): Values {
  if ("values" in one && "values" in other) return { values: [...one.values, ...other.values] };
  if ("codes" in one && "codes" in other) {
    const shift = one.texts.length;
    const codes = other.codes.map((code) => (code === null ? null : code + shift));
    return { codes: [...one.codes, ...codes], texts: [...one.texts, ...other.texts] };
  }
  throw new Error("a column changed its form from one page to the next");
}

/** The parts that a picture needs, what is seen before what is beside it. */
export function wantedParts(span: { from: number; to: number }, level: number, limits: { from: number; to: number }): Place[] {
  const room = width(level);
  const places = [
    { level, number: Math.floor(span.from / room) - 1 },
    { level, number: Math.ceil(span.to / room) },
    { level: level + 1, number: Math.floor((span.from + span.to) / 2 / width(level + 1)) },
  ];
  return places.filter(
    (place) =>
      place.level <= COARSEST &&
      place.number * width(place.level) < limits.to &&
      (place.number + 1) * width(place.level) > limits.from,
  );
}
