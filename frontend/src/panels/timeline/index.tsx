// The timeline: what ran when, on which thread and stream, with counters above.

import "./style.css";
import type { Page } from "../../api.ts";
import type { Span } from "../../draw/span.ts";
import { Answered, Empty, useAsked } from "../../parts/asking.tsx";
import { KEYS } from "../../parts/keys.tsx";
import type { Panel, PanelProps } from "../panel.ts";
import { Board } from "./board.tsx";
import { grouped } from "./tracks.ts";
import type { Group } from "./tracks.ts";

KEYS["timeline"] = [
  ["W, S", "closer, farther, at the pointer"],
  ["A, D", "earlier, later"],
  ["Ctrl+wheel", "closer, farther, at the pointer"],
  ["Wheel, Shift+wheel", "up and down, earlier and later"],
  ["Drag", "move the picture"],
  ["Shift+drag, drag on the ruler", "mark an area, with its statistics"],
  ["M", "mark the slice, or what is seen; again: unmark"],
  ["F, double click", "fit the slice, the area, or all"],
  ["0", "the whole trace"],
  ["[, ]", "the step before, after"],
  ["←, →", "the slice before, after, on its row"],
  ["↑, ↓", "the slice around, within"],
  ["Enter", "details of the slice"],
  ["n, N", "next, previous slice that the search finds"],
  ["t", "what is seen as a table"],
];

interface Known {
  groups: Group[];
  limits: Span;
}

/** Room beside the first and the last, of the whole. */
const ROOM = 0.01;

function known(page: Page): Known | null {
  const groups = grouped(page);
  const all = groups.flatMap((group) => group.tracks);
  // the recorder is at work long before and after the program is
  const program = all.filter((track) => track.kind !== "profiler");
  const tracks = program.some((track) => track.end > track.start) ? program : all;
  const from = Math.min(...tracks.map((track) => track.start).filter(Number.isFinite));
  const to = Math.max(...tracks.map((track) => track.end).filter(Number.isFinite));
  if (!(to >= from)) return null;
  const room = Math.max((to - from) * ROOM, 50);
  return { groups, limits: { from: Math.floor(from - room), to: Math.ceil(to + room) } };
}

function Timeline(props: PanelProps) {
  const { data, trace } = props;
  const ask = async () => known(await data.page(trace.id, "timeline", { what: "tracks" }, {}));
  const asked = useAsked(ask, trace.id);
  return (
    <Answered asked={asked}>
      {(found) =>
        found === null ? (
          <Empty title="Nothing happened in this recording">
            <p>It holds no slice, mark or sample. <a href="#/health">Health</a> tells what the file holds.</p>
          </Empty>
        ) : (
          <Board {...props} {...found} />
        )
      }
    </Answered>
  );
}

export const timeline: Panel = {
  name: "timeline",
  title: "Timeline",
  group: "time",
  component: Timeline,
};
