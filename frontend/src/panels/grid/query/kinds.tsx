// One kind of rows at a time, such as operators without the kernels that they launch.

import type { Data, Filter, Options } from "../../../data/api.ts";
import { useQuery } from "../../../parts/data/asking.tsx";
import { loadTable } from "../../../parts/data/full-table.ts";
import { Choice } from "../../../parts/controls/choice.tsx";
import { plain } from "../../../parts/text/plain.ts";
import { change } from "../../../route.ts";
import type { GridState } from "./state.ts";

/** The column of the kinds, and the word for it in the address. */
export const KIND = "kind";
const ALL = "all";

/** The kind in the address; else the panel's own, unless search or filters choose the rows. */
export function shownKind(
  word: string | undefined,
  state: Pick<GridState, "find" | "where">,
  standard: string | undefined,
): string | null {
  if (standard === undefined) return null;
  const isNarrowed = state.find !== "" || state.where.length > 0;
  const kind = word ?? (isNarrowed ? ALL : standard);
  return kind === ALL ? null : kind;
}

export function filtersOfKind(kind: string | null): Filter[] {
  return kind === null ? [] : [{ column: KIND, op: "is", value: kind }];
}

interface Props {
  data: Data;
  trace: string;
  view: string;
  options: Options;
  kind: string | null;
}

export function Kinds(props: Props) {
  const { data, trace, view, options } = props;
  const asked = useQuery(() => kindsOf(data, trace, view, options), JSON.stringify([trace, view, options]));
  if (asked.state !== "here") return null; // the rows say what is amiss
  const kinds = [...new Set([...asked.value, ...(props.kind === null ? [] : [props.kind])])];
  if (kinds.length < 2) return null;
  return (
    <Choice
      label="Kind"
      value={props.kind ?? ALL}
      choices={[[ALL, ALL], ...kinds.map((kind) => [kind, plain(kind)] as const)]}
      onChange={(kind) => change({ [KIND]: kind, row: undefined })}
    />
  );
}

async function kindsOf(data: Data, trace: string, view: string, options: Options): Promise<string[]> {
  const { columns } = await loadTable(data, trace, view, options, { columns: [KIND] });
  return [...new Set((columns[KIND] ?? []).filter((kind) => kind !== null).map(String))];
}
