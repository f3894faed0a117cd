// The list of completions below the caret of the editor.

import { useEffect, useRef } from "preact/hooks";
import type { Completion, Completions } from "./completion.ts";

export const OPTION_ID = "sql-completion-";

interface Props extends Completions {
  chosen: number;
  /** The editor's field, whose lines do not wrap and whose letters have one width. */
  field: HTMLTextAreaElement | null;
  onTake: (completion: Completion) => void;
}

/** Room in pixels that the list needs to the right of the caret. */
const WIDTH = 300;

export function CompletionList(props: Props) {
  const { start, found, chosen, field, onTake } = props;
  const list = useRef<HTMLUListElement>(null);
  useEffect(() => {
    list.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" });
  }, [chosen, found]);
  const before = (field?.value ?? "").slice(0, start).split("\n");
  const [line, column] = [before.length, before.at(-1)?.length ?? 0];
  const [scrolled, room] = [field?.scrollLeft ?? 0, Math.max((field?.clientWidth ?? WIDTH) - WIDTH, 0)];
  return (
    <ul
      ref={list} id="sql-completions" class="sql-completions" role="listbox" aria-label="Completions"
      style={{
        left: `clamp(0px, calc(${column} * 1ch + 8px - ${scrolled}px), ${room}px)`,
        top: `calc(${line} * 1.5em + 10px - ${field?.scrollTop ?? 0}px)`,
      }}
    >
      {found.map((one, at) => (
        <li
          key={one.text} id={`${OPTION_ID}${at}`} role="option" aria-selected={at === chosen} title={one.doc}
          onPointerDown={(event) => {
            event.preventDefault(); // the caret stays where it is
            onTake(one);
          }}
        >
          <span class="sql-name">{one.text}</span>
          <span class="muted">{one.kind}</span>
        </li>
      ))}
    </ul>
  );
}
