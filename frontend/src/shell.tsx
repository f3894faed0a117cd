// Header, navigation and the shown panel. Keys: `?` shows them all.

import { useEffect, useState } from "preact/hooks";
import type { Data, TraceInfo, ViewSpec } from "./api.ts";
import { PANELS } from "./panels/index.ts";
import { Answered, Empty, useAsked } from "./parts/asking.tsx";
import { Keys } from "./parts/keys.tsx";
import { change, link, useRoute } from "./route.ts";

const GROUPS = [
  ["answer", "Answer"],
  ["time", "Time"],
  ["code", "Code"],
  ["device", "Device"],
  ["memory", "Memory"],
  ["more", "More"],
] as const;

interface Known {
  traces: TraceInfo[];
  views: ReadonlyMap<string, ViewSpec>;
}

async function known(data: Data): Promise<Known> {
  const [traces, views] = await Promise.all([data.traces(), data.views()]);
  return { traces, views: new Map(views.map((view) => [view.name, view])) };
}

export function Shell(props: { data: Data }) {
  const asked = useAsked(() => known(props.data), "known");
  return <Answered asked={asked}>{(found) => <House data={props.data} {...found} />}</Answered>;
}

function House(props: { data: Data } & Known) {
  const route = useRoute();
  const [keys, showKeys] = useState(false);
  const panel = PANELS.find((known) => known.name === route.panel) ?? PANELS[0];
  const trace = props.traces.find((known) => known.id === route.params["trace"]) ?? props.traces[0];
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      if (event.key === "?" && !isTyping(event)) showKeys((shown) => !shown);
      if (event.key === "Escape") showKeys(false);
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);
  useEffect(() => {
    document.title = [panel?.title, trace?.name, "selftime"].filter(Boolean).join(" · ");
  }, [panel, trace]);
  if (panel === undefined || trace === undefined) {
    return <Empty title="No trace is here" text="Nothing was found to show." />;
  }
  const Shown = panel.component;
  return (
    <div class="house">
      <header>
        <a class="brand" href={link("answer")}>selftime</a>
        <TracePicker traces={props.traces} trace={trace} />
        <button type="button" class="quiet" title="Keys (?)" onClick={() => showKeys(true)}>?</button>
      </header>
      <Navigation shown={panel.name} />
      <main key={trace.id} data-panel={panel.name}>
        <Shown {...props} trace={trace} params={route.params} />
      </main>
      {keys && <Keys panel={panel.name} onClose={() => showKeys(false)} />}
    </div>
  );
}

export function isTyping(event: KeyboardEvent): boolean {
  const target = event.target as HTMLElement | null;
  return target !== null && /^(?:INPUT|TEXTAREA|SELECT)$/.test(target.tagName);
}

function Navigation(props: { shown: string }) {
  return (
    <nav aria-label="Panels">
      {GROUPS.map(([group, title]) => {
        const panels = PANELS.filter((panel) => panel.group === group);
        return panels.length === 0 ? null : (
          <section key={group}>
            <h2>{title}</h2>
            {panels.map((panel) => (
              <a
                key={panel.name}
                href={link(panel.name)}
                aria-current={panel.name === props.shown ? "page" : undefined}
              >
                {panel.title}
              </a>
            ))}
          </section>
        );
      })}
    </nav>
  );
}

/** Which trace is shown; several of them by run, worker and span. */
function TracePicker(props: { traces: TraceInfo[]; trace: TraceInfo }) {
  const { traces, trace } = props;
  if (traces.length === 1) return <span class="trace-name" title={trace.name}>{trace.name}</span>;
  const runs = [...new Set(traces.map((known) => known.run))];
  const pick = (id: string) => {
    if (id !== trace.id) change({ trace: id }, { replace: false });
  };
  return (
    <label class="trace-picker">
      <span class="visually-hidden">Trace</span>
      <select value={trace.id} onChange={(event) => pick(event.currentTarget.value)}>
        {runs.map((run) => (
          <optgroup key={run} label={run || "traces"}>
            {traces.filter((known) => known.run === run).map((known) => (
              <option key={known.id} value={known.id}>{known.name}</option>
            ))}
          </optgroup>
        ))}
      </select>
    </label>
  );
}

