// The command palette: everything that can be gone to, set or done, found by its letters. Ctrl+K.

import "./style.css";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Data, TraceInfo } from "../../data/api.ts";
import type { Panel } from "../../panels/panel.ts";
import { plain } from "../../parts/text/plain.ts";
import { change, go } from "../../route.ts";
import { actionEntries, type Around } from "./actions.ts";
import { matchingEntries, parsePalette, titlePieces, type Entry, type EntryKind, type FoundEntry } from "./entries.ts";
import { namedEntries, stepEntries } from "./names.ts";
import { highlightEntries, numberEntries } from "./numbers.ts";

interface Props extends Omit<Around, "tell"> {
  traces: readonly TraceInfo[];
  panels: readonly Panel[];
  letters: ReadonlyMap<string, string>;
}

const IS_MAC = /Mac|iP(?:hone|ad)/.test(navigator.platform);
const KEYS = IS_MAC ? "⌘K" : "Ctrl+K";
/** Time in ms for which what was done is told. */
const TOLD_MS = 4_000;

export function CommandPalette(props: Props) {
  const [isOpen, open] = useState(false);
  const [told, tell] = useState("");
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      const isOurs = event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey;
      if (!isOurs || document.querySelector("dialog[open]:not(.palette)") !== null) return;
      event.preventDefault();
      open((now) => !now);
    };
    addEventListener("keydown", pressed, { capture: true });
    return () => removeEventListener("keydown", pressed, { capture: true });
  }, []);
  useEffect(() => {
    const timer = setTimeout(() => tell(""), TOLD_MS);
    return () => clearTimeout(timer);
  }, [told]);
  return (
    <>
      <button type="button" class="palette-button" title={`Search and commands (${KEYS})`} aria-keyshortcuts="Control+K Meta+K" onClick={() => open(true)}>
        <svg viewBox="0 0 16 16" width="13" height="13" aria-hidden="true">
          <circle cx="6.5" cy="6.5" r="4.5" fill="none" stroke="currentColor" stroke-width="1.5" />
          <path d="M10 10l4.5 4.5" stroke="currentColor" stroke-width="1.5" stroke-linecap="round" />
        </svg>
        <span>Search</span>
        <kbd aria-hidden="true">{KEYS}</kbd>
      </button>
      <span class="palette-told" role="status">{told}</span>
      {isOpen && <Dialog {...props} tell={tell} onClose={() => open(false)} />}
    </>
  );
}

function Dialog(props: Props & Around & { onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [typed, type] = useState("");
  const [chosen, choose] = useState(0);
  useEffect(() => dialog.current?.showModal(), []);
  const known = useMemo(() => [...panelEntries(props), ...highlightEntries(), ...actionEntries(props), ...traceEntries(props)], []);
  const steps = useOfTrace(props, stepEntries);
  const findings = useOfTrace(props, numberEntries);
  const names = useNames(props, typed);
  const found = useMemo(() => matchingEntries(typed, [...known, ...steps, ...findings, ...names]), [typed, known, steps, findings, names]);
  const at = Math.min(chosen, Math.max(found.length - 1, 0));
  const run = (entry: Entry | undefined) => {
    if (entry === undefined) return;
    dialog.current?.close();
    entry.run();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const by = { ArrowDown: 1, ArrowUp: -1, PageDown: PAGE, PageUp: -PAGE }[event.key];
    if (event.key === "Enter") run(found[at]);
    else if (by === undefined) return;
    else choose(Math.abs(by) === 1 ? (at + by + found.length) % Math.max(found.length, 1) : Math.min(Math.max(at + by, 0), found.length - 1));
    event.preventDefault();
  };
  return (
    <dialog
      ref={dialog} class="palette" aria-label="Search and commands" onClose={props.onClose}
      onClick={(event) => event.target === dialog.current && dialog.current?.close()}
    >
      <input
        type="text" role="combobox" aria-label="Panel, name, step or command" aria-expanded={true} aria-controls="palette-list"
        aria-autocomplete="list" aria-activedescendant={found.length > 0 ? `palette-${at}` : undefined}
        placeholder="Panel, operator, kernel, line, step, trace or command" spellcheck={false} autocomplete="off"
        value={typed} onKeyDown={onKeyDown}
        onInput={(event) => {
          type(event.currentTarget.value);
          choose(0);
        }}
      />
      <List found={found} chosen={at} onRun={run} />
      <p class="palette-hint muted">
        <kbd>↑</kbd> <kbd>↓</kbd> choose, <kbd>Enter</kbd> opens, <kbd>Esc</kbd> closes; <kbd>&gt;</kbd> commands only, <kbd>:</kbd> a step
      </p>
    </dialog>
  );
}

const PAGE = 8;

function List(props: { found: readonly FoundEntry[]; chosen: number; onRun: (entry: Entry) => void }) {
  const { found, chosen, onRun } = props;
  const list = useRef<HTMLUListElement>(null);
  useEffect(() => {
    list.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" });
  }, [found, chosen]);
  return (
    <>
      <ul ref={list} id="palette-list" role="listbox" aria-label="Found">
        {found.map((entry, at) => (
          <li key={entry.id} id={`palette-${at}`} role="option" aria-selected={at === chosen} onClick={() => onRun(entry)}>
            <span class="palette-title" title={plain(entry.title)}>
              {titlePieces(entry.title, entry.places).map((piece, place) => (piece.isMatch ? <b key={place}>{piece.text}</b> : piece.text))}
            </span>
            {entry.detail && <span class="palette-detail muted">{plain(entry.detail)}</span>}
            {entry.keys && <kbd>{entry.keys}</kbd>}
            <span class="palette-kind muted">{entry.kind}</span>
          </li>
        ))}
      </ul>
      {found.length === 0 && <p class="palette-none muted" role="status">Nothing is called that.</p>}
    </>
  );
}

function panelEntries({ panels, letters, views }: Props): Entry[] {
  const known = new Set(panels.map((panel) => panel.name));
  const shown = panels.map(({ name, title }): Entry => {
    const letter = letters.get(name);
    return { id: `panel ${name}`, kind: "panel", title, ...(letter ? { keys: `g ${letter}` } : {}), run: () => go(name) };
  });
  const others = [...views.values()].filter((view) => !known.has(view.name));
  return [
    ...shown,
    ...others.map(({ name, title }): Entry => ({
      id: `table ${name}`, kind: "table", title: name.replaceAll("_", " "), detail: title, run: () => go("view", { name }),
    })),
  ];
}

/** What is meant in one trace only and does not go with the panel to another. */
const OF_ONE_TRACE = { slice: undefined, of: undefined, row: undefined, from: undefined, to: undefined };

function traceEntries({ traces, trace }: Props): Entry[] {
  return traces.filter((one) => one.id !== trace.id).map((one) => ({
    id: `trace ${one.id}`, kind: "trace", title: one.name, detail: one.run,
    run: () => change({ ...OF_ONE_TRACE, trace: one.id }, { replace: false }),
  }));
}

/** Steps, or findings: what is the same whatever is typed. */
function useOfTrace({ data, trace }: Props, load: (data: Data, trace: string) => Promise<Entry[]>): readonly Entry[] {
  const [entries, set] = useState<readonly Entry[]>([]);
  useEffect(() => {
    let isWanted = true;
    load(data, trace.id).then((found) => isWanted && set(found), () => undefined);
    return () => {
      isWanted = false;
    };
  }, [data, trace.id]);
  return entries;
}

/** Delay in ms after typing, and the fewest letters, before the trace is asked for names. */
const REST_MS = 120;
const LEAST_LETTERS = 2;
const ASKED_KINDS: readonly EntryKind[] = ["operator", "kernel", "line", "slice"];

/** Names of the trace that contain the longest of the typed words. */
function useNames({ data, trace }: Props, typed: string): readonly Entry[] {
  const [names, set] = useState<readonly Entry[]>([]);
  const { asked, kinds } = parsePalette(typed);
  const word = asked.split(/\s+/).reduce((longest, one) => (one.length > longest.length ? one : longest), "");
  const isAsked = word.length >= LEAST_LETTERS && (kinds === null || ASKED_KINDS.some((kind) => kinds.has(kind)));
  useEffect(() => {
    if (!isAsked) return undefined;
    let isWanted = true;
    const timer = setTimeout(() => {
      namedEntries(data, trace.id, word).then((found) => isWanted && set(found), () => undefined);
    }, REST_MS);
    return () => {
      isWanted = false;
      clearTimeout(timer);
    };
  }, [data, trace.id, word, isAsked]);
  return names;
}
