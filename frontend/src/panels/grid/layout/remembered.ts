// The columns that the reader has chosen for a view: remembered until others are chosen.

import { useCallback, useState } from "preact/hooks";
import type { ViewSpec } from "../../../data/api.ts";
import { store, stored } from "../../../parts/controls/stored.ts";

type Names = readonly string[] | null;

/** The remembered columns of a view, null if none are, and what remembers others or, for null, none. */
export function useRememberedColumns(spec: ViewSpec): [Names, (names: Names) => void] {
  const place = `columns-${spec.name}`;
  const [names, set] = useState<Names>(() => known(spec, stored(place)));
  const remember = useCallback(
    (chosen: Names) => {
      store(place, chosen === null ? null : chosen.join());
      set(chosen);
    },
    [place],
  );
  return [names, remember];
}

/** The stored names that the view still has. */
function known(spec: ViewSpec, words: string | null): Names {
  const names = (words ?? "").split(",").filter((name) => spec.columns.some((column) => column.name === name));
  return names.length === 0 ? null : names;
}
