// Header, navigation and the shown panel. Keys: `?` shows them all.

import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Data, TraceInfo } from "../data/api.ts";
import { PANELS } from "../panels/index.ts";
import type { Panel } from "../panels/panel.ts";
import { QueryResult, Empty, useQuery } from "../parts/data/asking.tsx";
import { Keys, type KeyLine } from "../parts/controls/keys.tsx";
import { HEALTH_MARKS } from "../parts/text/health-marks.ts";
import { plain } from "../parts/text/plain.ts";
import { change, link, useRoute, type Route } from "../route.ts";
import { usePanelKeys } from "./panel-keys.ts";
import { useTraceList, type TraceList } from "./trace-list.ts";
import { panelLetters } from "./letters.ts";
import { Navigation } from "./navigation.tsx";
import { Picker } from "./picker.tsx";
import { SchemeButton } from "./scheme.tsx";
import { useScrolling } from "./scrolling.ts";
import { Component, type ComponentChildren } from "preact";

const LETTERS = panelLetters(PANELS);
const LETTER_LINES: readonly KeyLine[] = PANELS.map(({ name, title }) => [
  LETTERS.get(name) ?? "",
  title,
]);

export function Shell(props: { data: Data }) {
  const [asked, refresh] = useTraceList(props.data);
  return (
    <QueryResult asked={asked} what="what there is">
      {(known) => <House data={props.data} {...known} refresh={refresh} />}
    </QueryResult>
  );
}

interface HouseProps extends TraceList {
  data: Data;
  refresh: () => void;
}

function House(props: HouseProps) {
  const { data, traces } = props;
  const route = useRoute();
  const named = route.params["trace"];
  // a newer recording comes before the one that is being read
  const before = useRef<string | undefined>(undefined);
  const trace = [named, before.current]
    .map((id) => traces.find((known) => known.id === id))
    .find((known) => known !== undefined) ?? traces[0];
  before.current = trace?.id;
  const panel = PANELS.find((known) => known.name === route.panel) ?? firstPanel(trace);
  useEffect(() => {
    document.title = [panel?.title, trace?.name, "selftime"].filter(Boolean).join(" · ");
  }, [panel, trace]);
  useEffect(() => {
    // later traces may come before the first one: the address is to mean this one from now on
    if (named === undefined && trace !== undefined && traces.length > 1) change({ trace: trace.id });
  }, [named, trace, traces]);
  if (panel === undefined || trace === undefined) {
    const text = "New traces appear here.";
    return <Empty title="There is no trace here yet" text={text} />;
  }
  return <Rooms {...props} data={data} route={route} panel={panel} trace={trace} />;
}

/** A ledger alone knows the run, and nothing of a step. */
function firstPanel(trace: TraceInfo | undefined): Panel | undefined {
  return PANELS.find((panel) => panel.name === "run" && trace?.is_ledger === true) ?? PANELS[0];
}

function Rooms(props: HouseProps & { route: Route; panel: Panel; trace: TraceInfo }) {
  const { data, traces, route, panel, trace } = props;
  const [isSheetShown, showSheet] = useState(false);
  const openSheet = useCallback(() => showSheet(true), []);
  const isGoing = usePanelKeys(LETTERS, openSheet);
  const main = useRef<HTMLElement>(null);
  useScrolling(main, panel.name);
  useFocus(main, panel.name);
  return (
    <div class="house">
      <button type="button" class="skip" onClick={() => main.current?.focus()}>
        Skip to the panel
      </button>
      <header>
        <a class="brand" href={link(PANELS[0]?.name ?? "")}>selftime</a>
        <Picker traces={traces} shown={trace} onOpen={props.refresh} />
        {!trace.is_ledger && <VerdictWord data={data} trace={trace} />}
        <span class="tools">
          <SchemeButton />
          <button type="button" class="quiet" title="Keys (?)" aria-label="Keys" onClick={openSheet}>
            <kbd aria-hidden="true">?</kbd>
          </button>
        </span>
      </header>
      <Navigation panels={PANELS.filter((known) => !(data.inline && known.needsServer))} shown={panel.name} letters={LETTERS} isGoing={isGoing} />
      <main ref={main} tabIndex={-1} data-panel={panel.name} aria-label={panel.title}>
        <Amiss route={route} traces={traces} shown={trace} />
        <Boundary key={`${trace.id} ${panel.name}`} title={panel.title}>
          <panel.component
            data={data}
            trace={trace}
            traces={traces}
            views={props.views}
            params={route.params}
          />
        </Boundary>
      </main>
      {isSheetShown && (
        <Keys
          panel={panel.name}
          title={panel.title}
          letters={LETTER_LINES}
          onClose={() => showSheet(false)}
        />
      )}
    </div>
  );
}

/** Moves the keyboard focus to a newly opened panel, except for the first. */
function useFocus(main: { current: HTMLElement | null }, panel: string): void {
  const before = useRef(panel);
  useEffect(() => {
    if (before.current !== panel) main.current?.focus({ preventScroll: true });
    before.current = panel;
  }, [main, panel]);
}

/** Shown if the URL names an unknown panel. */
function Amiss(props: { route: Route; traces: readonly TraceInfo[]; shown: TraceInfo }) {
  const { route, traces, shown } = props;
  const named = route.params["trace"];
  const isPanel = route.panel === "" || PANELS.some((panel) => panel.name === route.panel);
  const isTrace = named === undefined || traces.some((trace) => trace.id === named);
  const amiss = useMemo(
    () => [
      ...(isPanel ? [] : [`There is no panel “${plain(route.panel)}”.`]),
      ...(isTrace ? [] : [`The trace in the URL does not exist; this is ${plain(shown.name)}.`]),
    ],
    [isPanel, isTrace, route.panel, shown],
  );
  return amiss.length === 0 ? null : <p class="amiss" role="alert">{amiss.join(" ")}</p>;
}

interface Props {
  title: string;
  children: ComponentChildren;
}

export class Boundary extends Component<Props, { failed: Error | null }> {
  override state: { failed: Error | null } = { failed: null };

  static override getDerivedStateFromError(failed: Error): { failed: Error } {
    return { failed };
  }

  override componentDidCatch(failed: Error): void {
    console.error(failed);
  }

  override render() {
    const { failed } = this.state;
    if (failed === null) return this.props.children;
    return (
      <div class="failed">
        <Empty title={`${this.props.title} failed`} text={plain(failed.message || String(failed))}>
          <p>Other panels still work. This is a fault of selftime: please report it.</p>
          <button type="button" onClick={() => this.setState({ failed: null })}>Try again</button>
        </Empty>
      </div>
    );
  }
}

interface Verdict {
  word: string;
  why: string;
  notes: number;
}

async function verdictOf(data: Data, trace: string): Promise<Verdict> {
  const { verdict, text, notes } = await data.health(trace);
  return { word: verdict, why: notes[0] ?? text, notes: notes.length };
}

export function VerdictWord(props: { data: Data; trace: TraceInfo }) {
  const { data, trace } = props;
  const asked = useQuery(() => verdictOf(data, trace.id), trace.id);
  if (asked.state === "waiting" || (asked.state === "here" && asked.stale)) return null;
  const { word, why, notes } =
    asked.state === "failed" ? { word: "unreadable", why: asked.error, notes: 0 } : asked.value;
  return (
    <a class="verdict" data-verdict={word} href={link("health")} title={why}>
      <span class="verdict-mark" aria-hidden="true">{HEALTH_MARKS[word] ?? "✕"}</span>
      <span class="visually-hidden">Health of the trace: </span>
      {word}
      {notes > 1 && <span class="muted"> · {notes} notes</span>}
    </a>
  );
}
