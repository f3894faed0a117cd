// The timeline: what ran when, on which thread and stream, with counters above.

import "./style.css";
import type { Span } from "../../draw/span.ts";
import { QueryResult, Empty, useQuery } from "../../parts/data/asking.tsx";
import { KEYS } from "../../parts/controls/keys.tsx";
import type { Panel, PanelProps } from "../panel.ts";
import { rowsOf } from "./input/url-parameters.ts";
import { Board } from "./panes/board.tsx";
import { shownRanks, groupsOf, parseRankKeys, singleRank } from "./tracks/multi-rank.ts";
import type { ShownRank } from "./tracks/multi-rank.ts";
import type { Group } from "./tracks/tracks.ts";

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

interface Known {
  ranks: ShownRank[];
  /** Requested ranks that cannot be shown. */
  left: string[];
  groups: Group[];
  limits: Span;
  /** An option of the view: what the rows of streams are. */
  rows: { lanes?: "name" };
}

/** Margin before the first and after the last slice, as a share. */
const ROOM = 0.01;

async function known({ data, trace, params }: PanelProps): Promise<Known | null> {
  const keys = parseRankKeys(params["with"]);
  const { ranks, left } =
    keys.length === 0 ? { ranks: [singleRank(trace.id)], left: [] } : shownRanks(await data.job(trace.id), trace.id, keys);
  const rows = rowsOf(params["rows"], data.inline);
  const pages = await Promise.all(ranks.map((one) => data.page(one.trace, "timeline", { what: "tracks", ...rows }, {})));
  const groups = groupsOf(ranks, pages);
  const all = groups.flatMap((group) => group.tracks);
  // the recorder is at work long before and after the program is
  const program = all.filter((track) => track.kind !== "profiler");
  const tracks = program.some((track) => track.end > track.start) ? program : all;
  const from = Math.min(...tracks.map((track) => track.start).filter(Number.isFinite));
  const to = Math.max(...tracks.map((track) => track.end).filter(Number.isFinite));
  if (!(to >= from)) return null;
  const room = Math.max((to - from) * ROOM, 50);
  return { ranks, left, groups, rows, limits: { from: Math.floor(from - room), to: Math.ceil(to + room) } };
}

function Timeline(props: PanelProps) {
  const { trace, params } = props;
  const asked = useQuery(() => known(props), `${trace.id} ${params["with"] ?? ""} ${params["rows"] ?? ""}`);
  return (
    <>
      <h1 class="visually-hidden">Timeline</h1>
      <QueryResult asked={asked}>
        {(found) =>
          found === null ? (
            <Empty title="The recording is empty">
              <p>It holds no slice, mark or sample. <a href="#/health">Health</a> tells what the file holds.</p>
            </Empty>
          ) : (
            <Board key={[...found.ranks.map((one) => one.trace), found.rows.lanes].join(" ")} {...props} {...found} />
          )
        }
      </QueryResult>
    </>
  );
}

export const timeline: Panel = {
  name: "timeline",
  title: "Timeline",
  group: "time",
  component: Timeline,
};
