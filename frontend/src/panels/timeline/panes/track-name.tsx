// The name of a group or a track beside the canvas: a click folds or unfolds it.

import { shortName } from "../../../draw/names.ts";
import { plain } from "../../../parts/text/plain.ts";
import { countText, timeText } from "../../../units.ts";
import type { TimelineController } from "../input/controller.ts";
import { togglePin } from "../tracks/arrangement.ts";
import { ROW, allKey } from "../tracks/layout.ts";
import type { Line } from "../tracks/layout.ts";
import { counterText, mostOf } from "../tracks/tracks.ts";
import type { Track } from "../tracks/tracks.ts";
import type { TrackDrag } from "./track-drag.ts";
import { move } from "./track-menu.tsx";

/** Smallest height of a track, in pixels, with a description below the name. */
const TWO_LINES = 36;

interface Props {
  controller: TimelineController;
  line: Line;
  /** Where the line begins among those that scroll with it. */
  top: number;
  drag: TrackDrag;
  onMenu: () => void;
}

export function TrackName(props: Props) {
  const { controller, line, top, drag } = props;
  const { track, group } = line;
  const title = plain(track?.title ?? group.title);
  const { dragged } = drag;
  const pressed = (event: KeyboardEvent) => {
    const by = { ArrowUp: -1, ArrowDown: 1 }[event.key] as 1 | -1 | undefined;
    if (!event.altKey || by === undefined) return;
    event.preventDefault();
    const button = event.currentTarget as HTMLElement;
    move(controller, line.key, by);
    setTimeout(() => button.focus()); // an element that is moved loses it
  };
  return (
    <div
      role="listitem"
      class={track === null ? "timeline-group" : `timeline-track${line.height >= TWO_LINES && line.head === 0 ? " timeline-tall" : ""}`}
      data-leads={track === null && group.leads === true}
      data-dragged={dragged?.key === line.key}
      data-drop={dragged?.target === line.key}
      style={{ top: `${top}px`, height: `${line.height}px` }}
    >
      <button
        type="button"
        class="timeline-fold"
        aria-expanded={line.open}
        title={track === null ? [plain(group.of ?? ""), title].filter(Boolean).join(", ") : `${title}: ${track.what}, ${countText(track.count)} ${track.id < 0 ? "samples" : "slices"}${track.note === "" ? "" : `. ${track.note}`}`}
        onClick={() => controller.turn(line.key)}
        onKeyDown={pressed}
        onPointerDown={(event) => drag.begin(event, line.key)}
      >
        <span class="timeline-mark" aria-hidden="true">{line.open ? "▾" : "▸"}</span>
        <span class="timeline-title">
          {track === null && group.of !== undefined && <b class="timeline-rank">{plain(group.of)}</b>}
          {track === null && group.of !== undefined ? <span>{title}</span> : track === null ? title : plain(track.label)}
        </span>
        {track !== null && <span class="timeline-what">{track.id < 0 ? line.open && scaleText(track) : plain(whatText(line, track))}</span>}
      </button>
      {line.head > 0 && track?.names?.slice(0, line.rows).map(({ name, time, count }, row) => (
        <span key={row} class="timeline-row" style={{ top: `${(row + 1) * ROW + 2}px` }} title={`${plain(name.slice(0, 2000))}: ${timeText(time)} in ${countText(count)}`}>
          <span>{plain(shortName(name.slice(0, 400)).slice(0, 200))}</span> <span class="muted number">{timeText(time)}</span>
        </span>
      ))}
      {track !== null && line.head === 0 && line.open && (line.hidden > 0 || controller.picture.turned.has(allKey(track))) && (
        <button type="button" class="timeline-all" onClick={() => controller.turn(allKey(track))}>
          {line.hidden > 0 ? `show all ${track.rows} rows` : "show fewer rows"}
        </button>
      )}
      <Acts {...props} title={title} />
    </div>
  );
}

/** Buttons that show while the pointer or the focus is on the name. */
function Acts(props: Props & { title: string }) {
  const { controller, line, title, onMenu } = props;
  const { arrangement } = controller.picture;
  const isPinned = arrangement.pins.includes(line.key);
  return (
    <span class="timeline-acts">
      {line.track !== null && (
        <button
          type="button"
          class="timeline-act"
          tabIndex={-1}
          aria-pressed={isPinned}
          aria-label={`Pin ${title} to the top`}
          title={isPinned ? "Unpin" : "Pin to the top"}
          onClick={() => controller.arrange(togglePin(arrangement, line.key))}
        >
          <svg viewBox="0 0 12 12" width="12" height="12" aria-hidden="true">
            <path d="M4 1h4l-.5 3.2L9.5 6v1h-3v4h-1V7h-3V6l2-1.8z" fill="currentColor" />
          </svg>
        </button>
      )}
      <button type="button" class="timeline-act" data-menu={line.key} aria-haspopup="menu" aria-label={`More of ${title}`} title="Pin, hide, move" onClick={onMenu}>
        ⋯
      </button>
    </span>
  );
}

function whatText({ rows, hidden, head }: Line, { what }: Track): string {
  return head > 0 && hidden > 0 ? `${what}, ${rows} of ${rows + hidden} names` : what;
}

/** The label of the top of a counter's scale. */
function scaleText(track: Track): string {
  return track.kind === "utilization" ? "to 100 %" : `to ${counterText(track.kind, mostOf(track))}`;
}
