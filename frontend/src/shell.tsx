// Header, navigation and the shown panel. Keys: `?` shows them all.

import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Data, TraceInfo } from "./api.ts";
import { PANELS } from "./panels/index.ts";
import type { Panel } from "./panels/panel.ts";
import { Answered, Empty } from "./parts/asking.tsx";
import { Keys } from "./parts/keys.tsx";
import type { KeyLine } from "./parts/keys.tsx";
import { plain } from "./parts/plain.ts";
import { change, link, useRoute } from "./route.ts";
import type { Route } from "./route.ts";
import { Boundary } from "./shell/boundary.tsx";
import { useGoing } from "./shell/going.ts";
import { useKnown } from "./shell/knowing.ts";
import type { Known } from "./shell/knowing.ts";
import { letters } from "./shell/letters.ts";
import { Navigation } from "./shell/navigation.tsx";
import { Picker } from "./shell/picker.tsx";
import { SchemeButton } from "./shell/scheme.tsx";
import { useScrolling } from "./shell/scrolling.ts";
import { VerdictWord } from "./shell/verdict.tsx";

const LETTERS = letters(PANELS);
const LETTER_LINES: readonly KeyLine[] = PANELS.map(({ name, title }) => [
  LETTERS.get(name) ?? "",
  title,
]);

export function Shell(props: { data: Data }) {
  const [asked, refresh] = useKnown(props.data);
  return (
    <Answered asked={asked} what="what there is">
      {(known) => <House data={props.data} {...known} refresh={refresh} />}
    </Answered>
  );
}

interface HouseProps extends Known {
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
  const panel = PANELS.find((known) => known.name === route.panel) ?? PANELS[0];
  useEffect(() => {
    document.title = [panel?.title, trace?.name, "selftime"].filter(Boolean).join(" · ");
  }, [panel, trace]);
  useEffect(() => {
    // later traces may come before the first one: the address is to mean this one from now on
    if (named === undefined && trace !== undefined && traces.length > 1) change({ trace: trace.id });
  }, [named, trace, traces]);
  if (panel === undefined || trace === undefined) {
    const text = "As soon as there is one, it shows here.";
    return <Empty title="There is no trace here yet" text={text} />;
  }
  return <Rooms {...props} data={data} route={route} panel={panel} trace={trace} />;
}

function Rooms(props: HouseProps & { route: Route; panel: Panel; trace: TraceInfo }) {
  const { data, traces, route, panel, trace } = props;
  const [isSheetShown, showSheet] = useState(false);
  const openSheet = useCallback(() => showSheet(true), []);
  const isGoing = useGoing(LETTERS, openSheet);
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
        <VerdictWord data={data} trace={trace} />
        <span class="tools">
          <SchemeButton />
          <button type="button" class="quiet" title="Keys (?)" aria-label="Keys" onClick={openSheet}>
            <kbd aria-hidden="true">?</kbd>
          </button>
        </span>
      </header>
      <Navigation panels={PANELS} shown={panel.name} letters={LETTERS} isGoing={isGoing} />
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

/** Another panel has the keyboard's attention at once, but not the first one of all. */
function useFocus(main: { current: HTMLElement | null }, panel: string): void {
  const before = useRef(panel);
  useEffect(() => {
    if (before.current !== panel) main.current?.focus({ preventScroll: true });
    before.current = panel;
  }, [main, panel]);
}

/** What the address names and the page does not have. */
function Amiss(props: { route: Route; traces: readonly TraceInfo[]; shown: TraceInfo }) {
  const { route, traces, shown } = props;
  const named = route.params["trace"];
  const isPanel = route.panel === "" || PANELS.some((panel) => panel.name === route.panel);
  const isTrace = named === undefined || traces.some((trace) => trace.id === named);
  const amiss = useMemo(
    () => [
      ...(isPanel ? [] : [`There is no panel “${plain(route.panel)}”.`]),
      ...(isTrace ? [] : [`The trace of this address is not here: this is ${plain(shown.name)}.`]),
    ],
    [isPanel, isTrace, route.panel, shown],
  );
  return amiss.length === 0 ? null : <p class="amiss" role="alert">{amiss.join(" ")}</p>;
}
