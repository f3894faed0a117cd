// The timeline: what ran when, on which thread and stream, with counters above.

import "./style.css";
import { useMemo } from "preact/hooks";
import { QueryResult, Empty, useQuery } from "../../parts/data/asking.tsx";
import type { QueryState } from "../../parts/data/asking.tsx";
import { KEYS } from "../../parts/controls/keys.tsx";
import type { Panel, PanelProps } from "../panel.ts";
import { NOTHING, limitsOf, loadBeside, loadQueries, loadTraces } from "./loading.ts";
import type { Listed, ListedTraces } from "./loading.ts";
import { Board } from "./panes/board.tsx";
import { Notes } from "./panes/notes.tsx";
import { LoadedTiles } from "./tiles/loaded.ts";
import { distinctLabels, labelOf } from "./tracks/beside.ts";
import { groupsOf, queryGroups } from "./tracks/sources.ts";
import type { Source } from "./tracks/sources.ts";

KEYS["timeline"] = [
  ["W, S", "closer, farther, at the pointer"],
  ["A, D", "earlier, later"],
  ["Ctrl+wheel", "closer, farther, at the pointer"],
  ["Wheel, Shift+wheel", "up and down, earlier and later"],
  ["Drag", "move the picture"],
  ["Shift+drag, drag on the ruler", "mark an area, with its statistics"],
  ["M", "mark the slice, or what is seen; again: unmark"],
  ["F, double click", "fit the slice, the area, or all"],
  ["K", "fit the slice with its device work"],
  ["0", "the whole trace"],
  ["[, ]", "the step before, after"],
  ["i, I", "the next, previous gap of the device, and why"],
  ["h, H", "the next, previous wait of the host for the device"],
  ["x, X", "the next, previous slow step"],
  ["←, →", "the slice before, after, on its row"],
  ["↑, ↓", "the slice around, within"],
  ["Alt+↑, Alt+↓", "on the name of a track: move it up, down"],
  ["Enter", "details of the slice"],
  ["n, N", "next, previous slice that the search finds"],
  [",, .", "the previous, next slice of the finding that is highlighted"],
  ["t", "what is seen as a table"],
];

function Timeline(props: PanelProps) {
  const { trace, params } = props;
  const [ranks, rows, beside] = [params["with"] ?? "", params["rows"] ?? "", params["beside"] ?? ""];
  const base = useQuery(() => loadTraces(props), `${trace.id} ${ranks} ${rows}`);
  const second = useQuery(() => loadBeside(props), `${trace.id} ${rows} ${beside} ${params["align"] ?? ""}`);
  const queries = useQuery(() => loadQueries(props), `${trace.id} ${params["track"] ?? ""}`);
  const tiles = useMemo(() => new LoadedTiles(), [trace.id, rows]);
  return (
    <>
      <h1 class="visually-hidden">Timeline</h1>
      <QueryResult asked={base}>
        {(found) => {
          const shown = joined(labelOf(trace), found, valueOf(second), valueOf(queries));
          if (shown.limits === null) return <EmptyTrace />;
          return (
            <Board identity={keyOf(shown.sources, found.rows)} rows={found.rows} {...props} {...shown} limits={shown.limits} tiles={tiles}>
              <Notes left={found.left} second={second} queries={queries} isAsked={{ second: beside !== "", queries: params["track"] !== undefined, names: rows === "name" }} isReport={props.data.inline} />
            </Board>
          );
        }}
      </QueryResult>
    </>
  );
}

function EmptyTrace() {
  return (
    <Empty title="The recording is empty">
      <p>It holds no slice, mark or sample. <a href="#/health">Health</a> tells what the file holds.</p>
    </Empty>
  );
}

function valueOf(asked: QueryState<Listed>): Listed {
  return asked.state === "here" ? asked.value : NOTHING;
}

/** All sources, with their tracks in groups: the queries first, the second trace last. */
function joined(name: string, base: Listed, second: Listed, queries: Listed) {
  const [other] = second.sources;
  const [first, last] = distinctLabels(name, other?.label ?? "");
  const named = other === undefined ? base.sources : base.sources.map((one) => ({ ...one, label: one.label || first }));
  const beside = other === undefined ? [] : [{ ...other, label: last }];
  const traces = { sources: [...named, ...beside], pages: [...base.pages, ...second.pages] };
  const own = groupsOf(traces.sources, traces.pages);
  const groups = [...queryGroups(queries.sources, queries.pages), ...own];
  return { sources: [...traces.sources, ...queries.sources], groups, limits: limitsOf(own) };
}

/** What makes another picture. */
function keyOf(sources: readonly Source[], { lanes }: ListedTraces["rows"]): string {
  return [lanes, ...sources.map(({ at, trace, shift, query }) => `${at} ${trace} ${shift} ${query ?? ""}`)].join("\n");
}

export const timeline: Panel = {
  name: "timeline",
  title: "Timeline",
  group: "time",
  component: Timeline,
};
