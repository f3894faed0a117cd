// Names of groups and tracks beside the canvas; a click folds or unfolds them.

import { useEffect, useRef } from "preact/hooks";
import { plain } from "../../../parts/text/plain.ts";
import { bytesText, countText } from "../../../units.ts";
import type { TimelineController } from "../input/controller.ts";
import { allKey } from "../tracks/layout.ts";
import type { Line } from "../tracks/layout.ts";
import { mostOf } from "../tracks/tracks.ts";
import type { Track } from "../tracks/tracks.ts";

/** Smallest height of a track, in pixels, with a description below the name. */
const TWO_LINES = 36;

export function Gutter(props: { controller: TimelineController }) {
  const { controller } = props;
  const names = useRef<HTMLDivElement>(null);
  const own = useRef(0);
  const { picture } = controller;
  useEffect(
    () =>
      picture.follow(() => {
        if (names.current === null) return;
        names.current.scrollTop = picture.viewport.scroll;
        own.current = names.current.scrollTop;
      }),
    [picture],
  );
  const scrolled = () => {
    // a name that was reached by Tab is scrolled to by the browser, and the picture with it
    if (names.current === null || Math.abs(names.current.scrollTop - own.current) <= 1) return;
    picture.viewport.scrollTo(names.current.scrollTop);
    picture.redraw();
  };
  const wheel = (event: WheelEvent) => {
    picture.viewport.scrollTo(picture.viewport.scroll + event.deltaY);
    picture.redraw();
  };
  return (
    <div class="timeline-gutter">
      <div class="timeline-corner">tracks</div>
      <div class="timeline-names" ref={names} onScroll={scrolled} onWheel={wheel} tabIndex={-1}>
        <div role="list" aria-label="Tracks" style={{ height: `${picture.viewport.layout.height}px` }}>
          {picture.viewport.layout.lines.map((line) => <Name key={line.key} line={line} controller={controller} />)}
        </div>
      </div>
    </div>
  );
}

function Name(props: { line: Line; controller: TimelineController }) {
  const { line, controller } = props;
  const { track, group } = line;
  const title = plain(track?.title ?? group.title);
  return (
    <div
      role="listitem"
      class={track === null ? "timeline-group" : `timeline-track${line.height >= TWO_LINES ? " timeline-tall" : ""}`}
      data-leads={track === null && group.leads === true}
      style={{ top: `${line.y}px`, height: `${line.height}px` }}
    >
      <button
        type="button"
        class="timeline-fold"
        aria-expanded={line.open}
        title={track === null ? title : `${title}: ${track.what}, ${countText(track.count)} ${track.id < 0 ? "samples" : "slices"}`}
        onClick={() => controller.turn(line.key)}
      >
        <span class="timeline-mark" aria-hidden="true">{line.open ? "▾" : "▸"}</span>
        <span class="timeline-title">
          {track === null && group.of !== undefined && <b class="timeline-rank">{plain(group.of)}</b>}
          {track === null ? title : plain(track.label)}
        </span>
        {track !== null && <span class="timeline-what">{track.id < 0 ? line.open && scaleText(track) : track.what}</span>}
      </button>
      {track !== null && line.open && (line.hidden > 0 || controller.picture.turned.has(allKey(track))) && (
        <button type="button" class="timeline-all" onClick={() => controller.turn(allKey(track))}>
          {line.hidden > 0 ? `show all ${track.rows} rows` : "show fewer rows"}
        </button>
      )}
    </div>
  );
}

/** The label of a counter's maximum. */
function scaleText(track: Track): string {
  const most = mostOf(track.kind, track.high);
  if (track.kind === "memory") return `to ${bytesText(most)}`;
  return track.kind === "utilization" ? "to 100 %" : `to ${countText(most)}`;
}
