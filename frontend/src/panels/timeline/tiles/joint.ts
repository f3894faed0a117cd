// The tiles of several sources as one: each source's tiles are loaded by its own clock, and shifted
// when drawn.

import { ownTime, ownTrack, placeOfTrack, shownId, shownTime } from "../tracks/sources.ts";
import type { Source } from "../tracks/sources.ts";
import type { AvailablePart, Store, Wanted } from "./store.ts";
import { tilesInSpan, width } from "./tiles.ts";
import type { Part, Place, Samples } from "./tiles.ts";

/** The interface of tiles for the canvas. */
export interface Tiles {
  readonly error: string | null;
  readonly downsampled: number | null;
  want(wanted: readonly Wanted[]): void;
  has(one: Wanted): boolean;
  found(track: number, place: Place): AvailablePart[];
  samples(name: string, place: Place, track?: number): Samples[];
}

/** A source and its tiles. */
export interface Loaded {
  source: Source;
  store: Store;
}

export class JointTiles implements Tiles {
  readonly #sources: readonly Loaded[];
  readonly #byPlace: ReadonlyMap<number, Loaded>;
  readonly #parts = new WeakMap<Part, Part>();
  readonly #samples = new WeakMap<Samples, Samples>();

  constructor(sources: readonly Loaded[]) {
    this.#sources = sources;
    this.#byPlace = new Map(sources.map((one) => [one.source.at, one]));
  }

  get error(): string | null {
    return this.#sources.find(({ store }) => store.error !== null)?.store.error ?? null;
  }

  get downsampled(): number | null {
    const known = this.#sources.flatMap(({ store }) => (store.downsampled === null ? [] : [store.downsampled]));
    return known.length === 0 ? null : Math.max(...known);
  }

  want(wanted: readonly Wanted[]): void {
    for (const { source, store } of this.#sources) {
      const those = wanted.filter((one) => placeOfTrack(one.track) === source.at);
      store.want(those.flatMap((one) => own(source, one)));
    }
  }

  has(one: Wanted): boolean {
    const of = this.#byPlace.get(placeOfTrack(one.track));
    return of !== undefined && own(of.source, one).every((part) => of.store.has(part));
  }

  found(track: number, place: Place): AvailablePart[] {
    const of = this.#byPlace.get(placeOfTrack(track));
    if (of === undefined) return [];
    const { source, store } = of;
    if (source.at === 0) return store.found(track, place);
    return ownPlaces(source, place).flatMap((asked) => {
      const [from, to] = [asked.number * width(asked.level), (asked.number + 1) * width(asked.level)];
      return store.found(ownTrack(track), asked).map((found) => ({
        ...found,
        from: shownTime(source, Math.max(from, found.from)),
        to: shownTime(source, Math.min(to, found.to)),
        part: this.#shown(source, found.part),
      }));
    });
  }

  samples(name: string, place: Place, track = -1): Samples[] {
    const of = this.#byPlace.get(placeOfTrack(track));
    if (of === undefined) return [];
    const { source, store } = of;
    if (source.at === 0) return store.samples(name, place);
    const found = ownPlaces(source, place).flatMap((asked) => store.samples(name, asked));
    return [...new Set(found)].map((samples) => {
      const known = this.#samples.get(samples);
      if (known !== undefined) return known;
      const shown = { ...samples, start: moved(source, samples.start), end: moved(source, samples.end) };
      this.#samples.set(samples, shown);
      return shown;
    });
  }

  /** A part converted to the timeline's clock and ids; cached. */
  #shown(source: Source, part: Part): Part {
    const known = this.#parts.get(part);
    if (known !== undefined) return known;
    const shown = {
      ...part,
      lanes: part.lanes.map((lane) => ({
        ...lane,
        start: moved(source, lane.start),
        end: moved(source, lane.end),
        id: Float64Array.from(lane.id, (id) => shownId(source, id)),
      })),
      marks: part.marks && { ...part.marks, time: moved(source, part.marks.time) },
    };
    this.#parts.set(part, shown);
    return shown;
  }
}

function moved(source: Source, times: Float64Array): Float64Array {
  return times.map((time) => shownTime(source, time));
}

/** The one or two tiles of a source that overlap a tile of the timeline. */
export function ownPlaces(source: Source, place: Place): Place[] {
  const [from, to] = [place.number, place.number + 1].map((number) => ownTime(source, number * width(place.level)));
  return tilesInSpan(from ?? 0, to ?? 0, place.level).map((number) => ({ level: place.level, number }));
}

function own(source: Source, one: Wanted): Wanted[] {
  if (source.at === 0) return [one];
  return ownPlaces(source, one).map((place) => ({ ...place, track: ownTrack(one.track), depth: one.depth }));
}
