// What a column means, below its head.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { plain } from "../../parts/text/plain.ts";
import type { PlacedColumn } from "./layout/columns.ts";
import { meaningOf } from "./layout/columns.ts";

/** So long the pointer rests on a head before its meaning shows. */
const REST_MS = 350;

/** The column whose head the pointer rests on. */
export function useTip(): { column: number | null; point: (column: number | null) => void } {
  const [column, set] = useState<number | null>(null);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const point = useCallback((next: number | null) => {
    clearTimeout(timer.current);
    if (next === null) set(null);
    else timer.current = setTimeout(() => set(next), REST_MS);
  }, []);
  useEffect(() => () => clearTimeout(timer.current), []);
  return { column, point };
}

export function Tip(props: { column: PlacedColumn; left: number }) {
  const { column } = props;
  return (
    <div class="grid-tip" role="tooltip" style={{ left: `${props.left}px` }}>
      <p>{plain(column.doc)}</p>
      <p class="muted">
        <code>{column.name}</code>, {meaningOf(column.unit)}
        {column.nullable && "; a dash if unknown"}
      </p>
    </div>
  );
}
