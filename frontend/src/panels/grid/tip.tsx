// What a column means, below its head.

import { plain } from "../../parts/plain.ts";
import type { Placed } from "./columns.ts";
import { meaningOf } from "./columns.ts";

export function Tip(props: { column: Placed; left: number }) {
  const { column } = props;
  return (
    <div class="grid-tip" role="tooltip" style={{ left: `${props.left}px` }}>
      <p>{plain(column.doc)}</p>
      <p class="muted">
        <code>{column.name}</code>, {meaningOf(column.unit)}
        {column.nullable && "; a dash where the trace does not tell"}
      </p>
    </div>
  );
}
