// The line above a graph: the whole time, what a search found, and what the table lacks.

import type { ComponentChildren } from "preact";
import { Find } from "../../parts/controls/find.tsx";
import { MissingDataNote } from "../../parts/text/missing-data.tsx";
import type { FullTable } from "../../parts/data/full-table.ts";
import { MOST } from "../../parts/data/full-table.ts";
import { change } from "../../route.ts";
import { shareText } from "../../units.ts";

export interface Matched {
  nodes: number;
  share: number;
}

interface Props {
  table: FullTable;
  pending: boolean;
  find: string;
  /** What the search found; null without a search. */
  found: Matched | null;
  children: ComponentChildren;
}

export function Summary(props: Props) {
  const { table, found } = props;
  return (
    <div class="flame-summary">
      {props.children}
      {found !== null && (
        <span role="status" class="flame-found">
          {found.nodes === 0 ? "nothing matches" : `${found.nodes} nodes match: ${shareText(found.share)} of the time`}
        </span>
      )}
      {table.rows < table.total && table.rows >= MOST && (
        <span class="muted">the first {MOST} of {table.total} nodes are drawn</span>
      )}
      <MissingDataNote lacks={table.lacks} />
      {props.pending && <span class="muted" role="status">reading finer detail …</span>}
      <Find
        label="Search names"
        value={props.find}
        onChange={(find) => change({ find: find === "" ? undefined : find })}
      />
    </div>
  );
}
