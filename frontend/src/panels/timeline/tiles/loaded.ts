// Loaded tiles of all sources, which stay when another source joins the timeline or a clock is shifted.

import type { Data } from "../../../data/api.ts";
import { Names } from "../drawing/names.ts";
import type { Source } from "../tracks/sources.ts";
import { JointTiles } from "./joint.ts";
import { Store } from "./store.ts";
import type { Ask } from "./store.ts";

export class LoadedTiles {
  readonly names = new Names();
  readonly #stores = new Map<string, Store>();

  /** The tiles of some sources; `rows` is an option of the view, `changed` is called when there are more. */
  of(data: Data, sources: readonly Source[], rows: { lanes?: "name" }, changed: () => void): JointTiles {
    const known = new Map(this.#stores);
    this.#stores.clear(); // what is no longer shown is forgotten
    const loaded = sources.map((source) => {
      const key = `${source.trace} ${source.query ?? ""} ${source.at}`;
      const store = known.get(key) ?? new Store(asking(data, source, rows), this.names);
      this.#stores.set(key, store);
      store.share(sources.length, changed);
      return { source, store };
    });
    return new JointTiles(loaded);
  }
}

function asking(data: Data, { trace, query }: Source, rows: { lanes?: "name" }): Ask {
  if (query !== undefined) return (options, asked) => data.queryTrack(trace, query, options, asked);
  return (options, asked) => data.page(trace, "timeline", { ...options, ...rows }, asked);
}
