// Header, navigation and the shown panel, or the list of traces. Keys: `?` shows them all.

import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { ComponentChildren } from "preact";
import type { Data, TraceInfo } from "../data/api.ts";
import { inOrder, PANELS } from "../panels/index.ts";
import type { Panel } from "../panels/panel.ts";
import { QueryResult, Empty } from "../parts/data/asking.tsx";
import { ShownTrace } from "../parts/data/progress.tsx";
import { Keys, type KeyLine } from "../parts/controls/keys.tsx";
import { areUnrelated } from "../parts/data/unrelated-traces.ts";
import { plain } from "../parts/text/plain.ts";
import { change, link, useRoute, type Route } from "../route.ts";
import { countedText } from "../units.ts";
import { Boundary } from "./boundary.tsx";
import { usePanelKeys } from "./panel-keys.ts";
import { useTraceList, type TraceList } from "./trace-list.ts";
import { panelLetters } from "./letters.ts";
import { missingIn } from "./missing.ts";
import { Navigation } from "./navigation.tsx";
import { Opening, useContents, type Opened } from "./opening.tsx";
import { CommandPalette } from "./palette/palette.tsx";
import { Picker } from "./picker.tsx";
import { SchemeButton } from "./scheme.tsx";
import { useScrolling } from "./scrolling.ts";
import { useOuterFragment } from "./tensorboard.ts";
import { TRACES, TraceTable } from "./trace-table.tsx";
import { VerdictWord } from "./verdict.tsx";

const { first, others } = inOrder(PANELS);
const LETTERS = panelLetters(first, others);
const LETTER_LINES: readonly KeyLine[] = PANELS.map(({ name, title }) => [
  LETTERS.get(name) ?? "",
  title,
]);

export function Shell(props: { data: Data }) {
  const route = useRoute();
  useOuterFragment(route);
  const [asked, refresh] = useTraceList(props.data, route.params["trace"]);
  return (
    <QueryResult asked={asked} what="what there is">
      {(known) => <House data={props.data} {...known} route={route} refresh={refresh} />}
    </QueryResult>
  );
}

interface HouseProps extends TraceList {
  data: Data;
  route: Route;
  refresh: () => void;
}

function House(props: HouseProps) {
  const { data, traces, route } = props;
  const named = route.params["trace"];
  // a newer recording comes before the one that is being read
  const before = useRef<string | undefined>(undefined);
  const isNamed = named !== undefined || before.current !== undefined;
  const isList = route.panel === TRACES || (!isNamed && data.pair === null && areUnrelated(traces));
  const newest = isList ? undefined : traces.find((known) => known.id === before.current) ?? traces[0];
  const trace = named === undefined ? newest : traces.find((known) => known.id === named);
  before.current = trace?.id;
  useEffect(() => {
    // later traces may come before the first one: the address is to mean this one from now on
    if (named === undefined && trace !== undefined && traces.length > 1) change({ trace: trace.id });
  }, [named, trace, traces]);
  if (traces.length === 0) {
    return <Empty title="There is no trace here yet" text="New traces appear here." />;
  }
  if (route.panel === TRACES || (named === undefined && trace === undefined)) return <AllTraces {...props} />;
  if (trace === undefined) return <Gone {...props} named={named ?? ""} />;
  return <Rooms {...props} trace={trace} />;
}

function AllTraces({ traces, route, refresh }: HouseProps) {
  useTitle("Traces");
  useEffect(refresh, [refresh]); // traces may have come, or been opened, since
  return (
    <Hall>
      <h1>{countedText(traces.length, "trace")}</h1>
      <TraceTable traces={traces} params={route.params} panel={route.panel === TRACES ? "" : route.panel} />
    </Hall>
  );
}

/** In place of a trace that the address names and that is not among those shown. */
function Gone({ traces, route, named }: HouseProps & { named: string }) {
  useTitle("No such trace");
  return (
    <Hall>
      <h1>The trace of this address is not here</h1>
      <p>
        No trace that is shown here has the id <code>{plain(named.slice(0, 40))}</code>: its file was moved or
        deleted, or the address is of another server. If it comes, it is shown.
      </p>
      <h2>Traces that are here</h2>
      <TraceTable traces={traces} params={route.params} panel={route.panel} />
    </Hall>
  );
}

/** The page without a trace: nothing but what is in the middle. */
function Hall(props: { children: ComponentChildren }) {
  return (
    <div class="house bare">
      <header>
        <a class="brand" href="#/">selftime</a>
        <span class="tools"><SchemeButton /></span>
      </header>
      <main data-panel={TRACES} aria-label="Traces">{props.children}</main>
    </div>
  );
}

/** The panel that the address names, else the one that suits the trace, once that is open. */
function panelOf(route: Route, opened: Opened): Panel | undefined {
  const named = PANELS.find((known) => known.name === route.panel);
  if (named !== undefined || opened.state !== "open") return named;
  return PANELS.find((known) => known.name === opened.contents.landing) ?? PANELS[0];
}

function Rooms(props: HouseProps & { trace: TraceInfo }) {
  const { data, traces, route, trace } = props;
  const [isSheetShown, showSheet] = useState(false);
  const openSheet = useCallback(() => showSheet(true), []);
  const isGoing = usePanelKeys(LETTERS, openSheet);
  const opened = useContents(data, trace);
  const shown = useMemo(() => ({ data, trace }), [data, trace]);
  const panel = panelOf(route, opened);
  const name = panel?.name ?? "";
  const main = useRef<HTMLElement>(null);
  useScrolling(main, name);
  useFocus(main, name);
  useTitle(panel?.title, trace.name);
  const contents = opened.state === "open" ? opened.contents : null;
  const panels = PANELS.filter((known) => !(data.inline && known.needsServer));
  return (
    <div class="house">
      <button type="button" class="skip" onClick={() => main.current?.focus()}>
        Skip to the panel
      </button>
      <header>
        <a class="brand" href={link("")}>selftime</a>
        <Picker traces={traces} shown={trace} onOpen={props.refresh} />
        {!trace.is_ledger && contents !== null && <VerdictWord data={data} trace={trace} />}
        <span class="tools">
          <CommandPalette {...props} panel={panel} panels={panels} letters={LETTERS} openKeys={openSheet} />
          <SchemeButton />
          <button type="button" class="quiet" title="Keys (?)" aria-label="Keys" onClick={openSheet}>
            <kbd aria-hidden="true">?</kbd>
          </button>
        </span>
      </header>
      <Navigation
        panels={panels}
        shown={name}
        letters={LETTERS}
        isGoing={isGoing}
        missingIn={(known) => missingIn(known, contents, traces)}
      />
      <main ref={main} tabIndex={-1} data-panel={name} aria-label={panel?.title ?? "Panel"}>
        <Amiss panel={route.panel} />
        {opened.state !== "open" && <Opening data={data} trace={trace} opened={opened} />}
        {opened.state === "open" && panel !== undefined && (
          <Boundary key={`${trace.id} ${name}`} title={panel.title}>
            <ShownTrace.Provider value={shown}>
              <panel.component data={data} trace={trace} traces={traces} views={props.views} params={route.params} />
            </ShownTrace.Provider>
          </Boundary>
        )}
      </main>
      {isSheetShown && (
        <Keys
          panel={name}
          title={panel?.title ?? ""}
          letters={LETTER_LINES}
          onClose={() => showSheet(false)}
        />
      )}
    </div>
  );
}

function useTitle(...words: (string | undefined)[]): void {
  const title = [...words, "selftime"].filter(Boolean).join(" · ");
  useEffect(() => {
    document.title = title;
  }, [title]);
}

/** Moves the keyboard focus to a newly opened panel, except for the first. */
function useFocus(main: { current: HTMLElement | null }, panel: string): void {
  const before = useRef(panel);
  useEffect(() => {
    if (before.current !== panel && before.current !== "") main.current?.focus({ preventScroll: true });
    before.current = panel;
  }, [main, panel]);
}

/** Shown if the URL names an unknown panel. */
function Amiss({ panel }: { panel: string }) {
  if (panel === "" || PANELS.some((known) => known.name === panel)) return null;
  return <p class="amiss" role="alert">There is no panel “{plain(panel)}”.</p>;
}
