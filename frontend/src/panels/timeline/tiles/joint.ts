// The tiles of several ranks as one: each rank's tiles are loaded by its own clock, and shifted when
// drawn.

import { ownTime, ownTrack, placeOfTrack, shownId, shownTime } from "../tracks/multi-rank.ts";
import type { ShownRank } from "../tracks/multi-rank.ts";
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

export class JointTiles implements Tiles {
  readonly #ranks: readonly { rank: ShownRank; store: Store }[];
  readonly #parts = new WeakMap<Part, Part>();
  readonly #samples = new WeakMap<Samples, Samples>();

  constructor(ranks: readonly { rank: ShownRank; store: Store }[]) {
    this.#ranks = ranks;
  }

  get error(): string | null {
    return this.#ranks.find(({ store }) => store.error !== null)?.store.error ?? null;
  }

  get downsampled(): number | null {
    const known = this.#ranks.flatMap(({ store }) => (store.downsampled === null ? [] : [store.downsampled]));
    return known.length === 0 ? null : Math.max(...known);
  }

  want(wanted: readonly Wanted[]): void {
    for (const { rank, store } of this.#ranks) {
      const those = wanted.filter((one) => placeOfTrack(one.track) === rank.at);
      store.want(those.flatMap((one) => own(rank, one)));
    }
  }

  has(one: Wanted): boolean {
    const of = this.#ranks[placeOfTrack(one.track)];
    return of !== undefined && own(of.rank, one).every((part) => of.store.has(part));
  }

  found(track: number, place: Place): AvailablePart[] {
    const of = this.#ranks[placeOfTrack(track)];
    if (of === undefined) return [];
    const { rank, store } = of;
    if (rank.at === 0) return store.found(track, place);
    return ownPlaces(rank, place).flatMap((asked) => {
      const [from, to] = [asked.number * width(asked.level), (asked.number + 1) * width(asked.level)];
      return store.found(ownTrack(track), asked).map((found) => ({
        ...found,
        from: shownTime(rank, Math.max(from, found.from)),
        to: shownTime(rank, Math.min(to, found.to)),
        part: this.#shown(rank, found.part),
      }));
    });
  }

  samples(name: string, place: Place, track = -1): Samples[] {
    const of = this.#ranks[placeOfTrack(track)];
    if (of === undefined) return [];
    const { rank, store } = of;
    if (rank.at === 0) return store.samples(name, place);
    const found = ownPlaces(rank, place).flatMap((asked) => store.samples(name, asked));
    return [...new Set(found)].map((samples) => {
      const known = this.#samples.get(samples);
      if (known !== undefined) return known;
      const shown = { ...samples, start: moved(rank, samples.start), end: moved(rank, samples.end) };
      this.#samples.set(samples, shown);
      return shown;
    });
  }

  /** A part converted to the timeline's clock and ids; cached. */
  #shown(rank: ShownRank, part: Part): Part {
    const known = this.#parts.get(part);
    if (known !== undefined) return known;
    const shown = {
      ...part,
      lanes: part.lanes.map((lane) => ({
        ...lane,
        start: moved(rank, lane.start),
        end: moved(rank, lane.end),
        id: Float64Array.from(lane.id, (id) => shownId(rank, id)),
      })),
      marks: part.marks && { ...part.marks, time: moved(rank, part.marks.time) },
    };
    this.#parts.set(part, shown);
    return shown;
  }
}

function moved(rank: ShownRank, times: Float64Array): Float64Array {
  return times.map((time) => shownTime(rank, time));
}

/** The one or two tiles of a rank that overlap a tile of the timeline. */
export function ownPlaces(rank: ShownRank, place: Place): Place[] {
  const [from, to] = [place.number, place.number + 1].map((number) => ownTime(rank, number * width(place.level)));
  return tilesInSpan(from ?? 0, to ?? 0, place.level).map((number) => ({ level: place.level, number }));
}

function own(rank: ShownRank, one: Wanted): Wanted[] {
  if (rank.at === 0) return [one];
  return ownPlaces(rank, one).map((place) => ({ ...place, track: ownTrack(one.track), depth: one.depth }));
}
