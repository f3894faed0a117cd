// Which columns are shown, and in which order.

import { useRef, useState } from "preact/hooks";
import type { Column } from "../../../data/api.ts";
import { plain } from "../../../parts/text/plain.ts";
import { labelOf } from "./columns.ts";
import { useOutside } from "../query/filter.tsx";

interface Props {
  columns: readonly Column[];
  withValues: readonly string[];
  shown: readonly string[];
  onChange: (names: string[] | null) => void;
}

export function Chooser(props: Props) {
  const [isOpen, open] = useState(false);
  const box = useRef<HTMLDivElement>(null);
  useOutside(box, () => open(false));
  return (
    <div ref={box} class="grid-menu" onKeyDown={(event) => event.key === "Escape" && open(false)}>
      <button type="button" data-columns aria-expanded={isOpen} onClick={() => open(!isOpen)}>
        Columns <span class="muted">{props.shown.length} of {props.columns.length}</span>
      </button>
      {isOpen && <List {...props} />}
    </div>
  );
}

function List(props: Props) {
  const { columns, withValues, shown, onChange } = props;
  const set = (name: string, isShown: boolean) => {
    const next = isShown ? inOrder(columns, [...shown, name], shown) : shown.filter((one) => one !== name);
    if (next.length > 0) onChange(next);
  };
  return (
    <div class="grid-columns">
      <p class="grid-buttons">
        <button type="button" onClick={() => onChange(columns.map((column) => column.name))}>All</button>
        <button type="button" onClick={() => onChange([...withValues])}>With values</button>
        <button type="button" onClick={() => onChange(null)}>The main ones</button>
      </p>
      {columns.map((column) => (
        <label key={column.name} class="grid-check" title={plain(column.doc)}>
          <input
            type="checkbox"
            checked={shown.includes(column.name)}
            onChange={(event) => set(column.name, event.currentTarget.checked)}
          />
          <span>{labelOf(column.name)}</span>
          <span class="muted">{plain(column.doc)}</span>
        </label>
      ))}
    </div>
  );
}

/** A new column comes after the shown one that the view has before it. */
function inOrder(columns: readonly Column[], names: readonly string[], shown: readonly string[]): string[] {
  const place = new Map(columns.map((column, at) => [column.name, at]));
  const added = names.filter((name) => !shown.includes(name));
  return added.reduce<string[]>((found, name) => {
    const before = found.findLastIndex((one) => (place.get(one) ?? 0) < (place.get(name) ?? 0));
    return found.toSpliced(before + 1, 0, name);
  }, [...shown]);
}
