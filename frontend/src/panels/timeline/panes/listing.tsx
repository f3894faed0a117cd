// The visible slices as a table, for screen readers.

import { useMemo } from "preact/hooks";
import { plain } from "../../../parts/text/plain.ts";
import { countText, instantText, timeText } from "../../../units.ts";
import type { TimelineController } from "../input/controller.ts";
import { sliceOf } from "../input/hits.ts";
import type { Slice } from "../drawing/viewport.ts";
import { tilesInSpan, width } from "../tiles/tiles.ts";

const MOST = 500;

interface Listed {
  title: string;
  slices: Slice[];
}

export function Listing(props: { controller: TimelineController; onClose: () => void }) {
  const { controller, onClose } = props;
  const { span } = controller.picture.viewport;
  const tracks = useMemo(() => listed(controller), [controller, span, controller.picture.turned, controller.said]);
  const count = tracks.reduce((sum, track) => sum + track.slices.length, 0);
  return (
    <section class="timeline-listing timeline-pane" aria-label="Visible slices as a table">
      <header>
        <h2>Visible slices, longest first</h2>
        <span class="muted">{instantText(span.from)} to {instantText(span.to)}</span>
        <button type="button" class="quiet" aria-label="Close" title="Close (t)" onClick={onClose}>×</button>
      </header>
      <div class="timeline-stats">
        <table>
          <thead>
            <tr>
              <th scope="col">slice</th><th scope="col">track</th><th scope="col" class="number">start</th>
              <th scope="col" class="number">duration</th><th scope="col" class="number">self</th>
            </tr>
          </thead>
          <tbody>
            {tracks.flatMap(({ title, slices }) =>
              slices.map((slice) => (
                <tr key={`${slice.track} ${slice.row} ${slice.start}`}>
                  <th scope="row">
                    <button type="button" class="timeline-link" title={plain(slice.name.slice(0, 2000))} onClick={() => controller.select(slice)}>
                      {slice.count > 1 ? `${countText(slice.count)} slices, longest ` : ""}{plain(slice.name.slice(0, 200))}
                    </button>
                  </th>
                  <td>{title}</td>
                  <td class="number">{instantText(slice.start)}</td>
                  <td class="number">{timeText(slice.end - slice.start)}</td>
                  <td class="number">{Number.isNaN(slice.self) ? "-" : timeText(slice.self)}</td>
                </tr>
              )),
            )}
          </tbody>
        </table>
        {count === 0 && <p class="muted">No slice is visible here.</p>}
        {count >= MOST && <p class="muted">The {MOST} longest; come closer for others.</p>}
      </div>
    </section>
  );
}

/** The slices of the shown tracks that lie in the picture, by track; the longest of them. */
function listed(controller: TimelineController): Listed[] {
  const { viewport, store, names, level } = controller.picture;
  const found: (Slice & { title: string })[] = [];
  for (const line of viewport.layout.lines) {
    const { track } = line;
    if (track === null || track.id < 0) continue;
    for (const number of tilesInSpan(viewport.span.from, viewport.span.to, level)) {
      for (const { part } of store.found(track.id, { level, number })) {
        for (const [row, lane] of part.lanes.slice(0, line.rows).entries()) {
          for (let at = 0; at < lane.start.length; at++) {
            const [start, end] = [lane.start[at] as number, lane.end[at] as number];
            const isOwn = start >= number * width(level) || number === Math.floor(viewport.span.from / width(level));
            if (!isOwn || end < viewport.span.from || start > viewport.span.to) continue;
            found.push({ ...sliceOf(lane, at, names, track.id, row), title: plain(track.label) });
          }
        }
      }
    }
  }
  found.sort((one, other) => other.end - other.start - (one.end - one.start));
  const tracks = new Map<string, Slice[]>();
  for (const slice of found.slice(0, MOST)) {
    const slices = tracks.get(slice.title);
    if (slices) slices.push(slice);
    else tracks.set(slice.title, [slice]);
  }
  return [...tracks].map(([title, slices]) => ({ title, slices }));
}
