// Above the names of the tracks: the filter, how tracks are grouped, what is hidden.

import { Choice } from "../../../parts/controls/choice.tsx";
import { usePopover } from "../../../parts/controls/popover.ts";
import { plain } from "../../../parts/text/plain.ts";
import { change, current, link } from "../../../route.ts";
import type { TimelineController } from "../input/controller.ts";
import { USUAL, arrangementWords, groupedBy, toggleHidden } from "../tracks/arrangement.ts";
import { GROUPINGS, regrouped } from "../tracks/grouping.ts";

const ROWS = [
  ["depth", "one", "Kernels and copies on one row, side by side where they overlap"],
  ["name", "by name", "A row for each name, that of most time first"],
] as const;

export function TrackTools(props: { controller: TimelineController }) {
  const { controller } = props;
  const { arrangement } = controller.picture;
  const { open, show, holder } = usePopover<HTMLDivElement>();
  const words = { ...arrangementWords(arrangement), rows: current().params["rows"] };
  const isUsual = Object.values(words).every((word) => word === undefined);
  return (
    <div class="timeline-corner timeline-track-tools" ref={holder}>
      <input
        type="search"
        value={arrangement.only}
        placeholder="Filter tracks"
        aria-label="Filter tracks"
        spellcheck={false}
        autocomplete="off"
        onInput={(event) => controller.arrange({ ...arrangement, only: event.currentTarget.value }, { replace: true })}
      />
      <button type="button" aria-expanded={open} aria-pressed={!isUsual} title="Group tracks, show hidden ones" onClick={() => show(!open)}>
        Tracks
      </button>
      {open && <Box controller={controller} isUsual={isUsual} />}
    </div>
  );
}

function Box(props: { controller: TimelineController; isUsual: boolean }) {
  const { controller, isUsual } = props;
  const { arrangement, groups } = controller.picture;
  const known = regrouped(groups, arrangement.by).flatMap((group) => [
    { key: group.key, title: group.title },
    ...group.tracks.map((track) => ({ key: track.key, title: `${track.label}, ${track.what}` })),
  ]);
  const reset = () => change({ ...arrangementWords(USUAL), rows: undefined }, { replace: false });
  const queries = current().params["track"];
  const hidden = known.filter(({ key }) => arrangement.hidden.includes(key));
  return (
    <div class="timeline-box" role="group" aria-label="Tracks">
      <Choice
        label="Group by"
        value={arrangement.by}
        choices={GROUPINGS}
        onChange={(by) => controller.arrange(groupedBy(arrangement, by))}
      />
      {!controller.data.inline && (
        <Choice
          label="Rows of streams"
          value={current().params["rows"] === "name" ? "name" : "depth"}
          choices={ROWS}
          onChange={(rows) => change({ rows: rows === "name" ? rows : undefined, area: undefined }, { replace: false })}
        />
      )}
      {hidden.length > 0 && (
        <>
          <h3>Hidden</h3>
          <ul>
            {hidden.map(({ key, title }) => (
              <li key={key}>
                <span>{plain(title)}</span>
                <button type="button" aria-label={`Show ${plain(title)}`} onClick={() => controller.arrange(toggleHidden(arrangement, key))}>Show</button>
              </li>
            ))}
          </ul>
        </>
      )}
      {controller.data.inline
        ? <p class="muted">A report answers no queries; <code>selftime serve</code> shows their results as tracks, and rows by name.</p>
        : <a href={link("sql", queries === undefined ? {} : { track: queries })}>Add a track from a query</a>}
      <button type="button" disabled={isUsual} onClick={reset}>As at first</button>
      <p class="muted">Drag a name to move it, or Alt+↑ and Alt+↓ on it.</p>
    </div>
  );
}
