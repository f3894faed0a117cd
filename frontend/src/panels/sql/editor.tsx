// The editor of a query: coloured words, a list of completions, the place of an error underlined.

import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { SqlPlace, SqlRelation } from "../../data/sql.ts";
import { completions, type Completion, type Completions } from "./completion.ts";
import { CompletionList, OPTION_ID } from "./completion-list.tsx";
import { sqlTokens } from "./tokens.ts";

export interface EditorHandle {
  /** Writes a text where the caret is, apart from a word before it. */
  insert: (text: string) => void;
  select: (place: SqlPlace) => void;
}

interface Props {
  handle: { current: EditorHandle | null };
  value: string;
  relations: readonly SqlRelation[];
  wrong: SqlPlace | null;
  onChange: (text: string) => void;
  onRun: () => void;
  onEscape: () => void;
}

const NO_COMPLETIONS: Completions = { start: 0, found: [] };
const LEAST_LINES = 6;
const MOST_LINES = 18;

export function Editor(props: Props) {
  const { value, relations, wrong, onChange } = props;
  const field = useRef<HTMLTextAreaElement>(null);
  const colours = useRef<HTMLPreElement>(null);
  const [offered, offer] = useState(NO_COMPLETIONS);
  const [chosen, choose] = useState(0);
  const [isMeant, mean] = useState(false);
  const close = () => offer(NO_COMPLETIONS);
  const look = (isAsked: boolean) => {
    const shown = field.current;
    if (shown === null || shown.selectionStart !== shown.selectionEnd) return close();
    offer(completions(shown.value, shown.selectionStart, relations, isAsked));
    choose(0);
    mean(isAsked);
  };
  const take = (completion: Completion) => {
    const shown = field.current;
    if (shown === null) return;
    write(shown, completion.text, offered.start, shown.selectionStart);
    close();
  };
  useHandle(props.handle, field);
  const follow = () => {
    if (field.current === null || colours.current === null) return;
    colours.current.scrollTop = field.current.scrollTop;
    colours.current.scrollLeft = field.current.scrollLeft;
  };
  useLayoutEffect(follow, [value]);
  const isOffering = offered.found.length > 0;
  const lines = Math.min(Math.max(value.split("\n").length + 1, LEAST_LINES), MOST_LINES);
  return (
    <div class="sql-editor" style={{ height: `calc(${lines} * 1.5em + 18px)` }}>
      <pre ref={colours} aria-hidden="true"><Coloured text={value} wrong={wrong} />{"\n"}</pre>
      <textarea
        ref={field}
        aria-label="Query in SQL"
        aria-autocomplete="list"
        aria-haspopup="listbox"
        aria-controls={isOffering ? "sql-completions" : undefined}
        aria-activedescendant={isOffering ? `${OPTION_ID}${chosen}` : undefined}
        aria-invalid={wrong !== null}
        wrap="off" spellcheck={false} autocomplete="off" autocapitalize="off"
        placeholder="select name, count(*) as calls from slices group by name order by calls desc"
        value={value}
        onInput={(event) => {
          onChange(event.currentTarget.value);
          look(false);
        }}
        onScroll={follow}
        onBlur={close}
        onClick={close}
        onKeyDown={(event) => {
          if (pressed(event, { props, offered, chosen, isMeant, close, take, look, choose: (at) => (mean(true), choose(at)) })) event.preventDefault();
        }}
      />
      {isOffering && (
        <CompletionList {...offered} chosen={chosen} field={field.current} onTake={take} />
      )}
    </div>
  );
}

interface Pressed {
  props: Props;
  offered: Completions;
  chosen: number;
  /** Whether a completion was asked for or walked to; else Enter ends the line. */
  isMeant: boolean;
  choose: (at: number) => void;
  close: () => void;
  take: (completion: Completion) => void;
  look: (isAsked: boolean) => void;
}

/** Follows a key; whether it meant something here. */
function pressed(event: KeyboardEvent, { props, offered, chosen, isMeant, choose, close, take, look }: Pressed): boolean {
  const count = offered.found.length;
  const isChord = event.ctrlKey || event.metaKey;
  if (event.key === "Enter" && isChord) {
    close();
    props.onRun();
  } else if (event.key === " " && isChord) look(true);
  else if (event.key === "Escape") count > 0 ? close() : props.onEscape();
  else if (count === 0 || isChord || event.shiftKey || event.altKey) {
    if (/^(?:Arrow|Home|End|Page)/.test(event.key)) close();
    return false;
  } else if (event.key === "ArrowDown") choose((chosen + 1) % count);
  else if (event.key === "ArrowUp") choose((chosen - 1 + count) % count);
  else if (event.key === "Tab" || (event.key === "Enter" && isMeant)) take(offered.found[chosen] as Completion);
  else {
    if (event.key === "ArrowLeft" || event.key === "ArrowRight") close();
    return false;
  }
  return true;
}

/** Replaces a part of the field as typing does, so that it can be undone. */
function write(field: HTMLTextAreaElement, text: string, start: number, end: number): void {
  field.focus();
  field.setSelectionRange(start, end);
  if (!document.execCommand("insertText", false, text)) {
    field.setRangeText(text, start, end, "end");
    field.dispatchEvent(new Event("input", { bubbles: true }));
  }
}

function useHandle(handle: Props["handle"], field: { readonly current: HTMLTextAreaElement | null }): void {
  useEffect(() => {
    handle.current = {
      insert: (text) => {
        const shown = field.current;
        if (shown === null) return;
        const [before, after] = [shown.value.slice(0, shown.selectionStart), shown.value.slice(shown.selectionEnd)];
        const left = /[\p{L}\p{N}_,]$/u.test(before) ? " " : "";
        const right = /^[\p{L}\p{N}_]/u.test(after) ? " " : "";
        write(shown, left + text + right, shown.selectionStart, shown.selectionEnd);
      },
      select: ({ start, end }) => {
        field.current?.focus();
        field.current?.setSelectionRange(start, end);
      },
    };
    return () => {
      handle.current = null;
    };
  }, []);
}

function Coloured(props: { text: string; wrong: SqlPlace | null }) {
  const { text, wrong } = props;
  const parts: ComponentChildren[] = [];
  for (const token of sqlTokens(text)) {
    const end = token.start + token.text.length;
    const cuts = wrong === null ? [] : [wrong.start, Math.max(wrong.end, wrong.start + 1)];
    const edges = [token.start, ...cuts.filter((cut) => cut > token.start && cut < end), end];
    edges.slice(0, -1).forEach((from, at) => {
      const piece = text.slice(from, edges[at + 1]);
      const isWrong = wrong !== null && from >= wrong.start && from < Math.max(wrong.end, wrong.start + 1);
      parts.push(<span key={from} class={`sql-${token.kind}`} data-wrong={isWrong || undefined}>{piece}</span>);
    });
  }
  if (wrong !== null && wrong.start >= text.length) parts.push(<span key="end" data-wrong>{" "}</span>);
  return <>{parts}</>;
}
