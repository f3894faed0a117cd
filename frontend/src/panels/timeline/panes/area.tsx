// Statistics of the selected time span.

import { useState } from "preact/hooks";
import type { Page } from "../../../data/api.ts";
import { QueryResult, useQuery } from "../../../parts/data/asking.tsx";
import { plain } from "../../../parts/text/plain.ts";
import { countText, instantText, shareText, timeText } from "../../../units.ts";
import type { PanelProps } from "../../panel.ts";
import { isTrace, ownTime, ownTrack, placeOfTrack, shownId } from "../tracks/sources.ts";
import type { Source } from "../tracks/sources.ts";
import type { TimelineController } from "../input/controller.ts";
import { Compared } from "./compared.tsx";
import { cellReader } from "../tiles/cell-reader.ts";
import type { Area } from "../drawing/viewport.ts";

const BY = [
  ["name", "by name"],
  ["category", "by category"],
  ["track", "by track"],
] as const;
const TOP = 200;
/** Categories of the program's slices, without the recorder's and duplicates of annotations. */
const PROGRAM = "host,python,device,other";

export function AreaPane(props: PanelProps & { controller: TimelineController; area: Area }) {
  const { data, controller, area } = props;
  const [by, group] = useState<string>("name");
  const [place, turn] = useState(0);
  const marked = controller.sources.filter((one) => isTrace(one) && (area.tracks === null || numbersOf(area, one).length > 0));
  const of = marked.find((one) => one.at === place) ?? marked[0] ?? controller.of(0);
  const tracks = area.tracks === null ? PROGRAM : numbersOf(area, of).join(",");
  const [from, to] = [Math.round(ownTime(of, area.from)), Math.round(ownTime(of, area.to))];
  const options = { start: from, end: Math.max(to, from + 1) || 1, tracks, by };
  const key = JSON.stringify([of.trace, options]);
  const asked = useQuery(() => data.page(of.trace, "selection", options, { rows: TOP }), key);
  return (
    <section class="timeline-details" aria-label="Statistics of the marked area">
      <header>
        <h2>{timeText(area.to - area.from)} marked</h2>
        <span class="muted">
          from {instantText(area.from)} to {instantText(area.to)}, {area.tracks === null ? "all tracks" : `${area.tracks.length} tracks`}
        </span>
        {marked.length > 1 && (
          <span class="timeline-choice" role="group" aria-label="Trace">
            {marked.map((one) => (
              <button key={one.at} type="button" aria-pressed={one === of} onClick={() => turn(one.at)}>{plain(one.label)}</button>
            ))}
          </span>
        )}
        <span class="timeline-choice" role="group" aria-label="Rows">
          {BY.map(([name, title]) => (
            <button key={name} type="button" aria-pressed={by === name} onClick={() => group(name)}>{title}</button>
          ))}
        </span>
        <Compared controller={controller} />
        <button type="button" class="quiet" title="Fit (F)" onClick={() => controller.fit()}>Fit</button>
        <button type="button" class="quiet" title="Close (Esc)" aria-label="Close" onClick={() => controller.mark(null)}>×</button>
      </header>
      {tracks === "" ? <p class="muted timeline-stats">Counters have no slices; mark tracks of threads or streams.</p> : <QueryResult asked={asked}>{(page) => <Rows page={page} controller={controller} of={of} />}</QueryResult>}
    </section>
  );
}

/** Numbers of the marked tracks of a rank; counters have no slices. */
function numbersOf(area: Area, of: Source): number[] {
  const tracks = (area.tracks ?? []).filter((key) => key.startsWith("t")).map((key) => Number(key.slice(1)));
  return tracks.filter((track) => placeOfTrack(track) === of.at).map(ownTrack);
}

function Rows(props: { page: Page; controller: TimelineController; of: Source }) {
  const { page, controller, of } = props;
  const read = cellReader(page);
  const rows = Array.from({ length: page.rows }, (_, row) => row);
  if (rows.length <= 1) return <p class="muted">This area has no slices.</p>;
  const share = (row: number) => shareText(read.number("share", row) || 0);
  return (
    <div class="timeline-stats">
      <table>
        <thead>
          <tr>
            <th scope="col">what</th>
            <th scope="col" class="number" title="Time in which it was the innermost slice of its track">self</th>
            <th scope="col" class="number" title="Time in which at least one of them was running">busy</th>
            <th scope="col" class="number" title="Busy, of the marked time">share</th>
            <th scope="col" class="number" title="Sum of their durations within the area">total</th>
            <th scope="col" class="number">count</th>
            <th scope="col" class="number" title="The longest, within the area">longest</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row} class={row === 0 ? "timeline-sum" : undefined}>
              <th scope="row" title={plain(read.text("what", row).slice(0, 2000))}>
                {row === 0 ? "all" : (
                  <button type="button" class="timeline-link" title="Go to the longest" onClick={() => void controller.open(shownId(of, read.number("id", row)))}>
                    {plain(read.text("what", row).slice(0, 300))}
                  </button>
                )}
                <span class="muted"> {plain(read.text("category", row))}</span>
              </th>
              <td class="number">{timeText(read.number("self", row))}</td>
              <td class="number">{timeText(read.number("busy", row))}</td>
              <td class="number">{share(row)}</td>
              <td class="number">{timeText(read.number("total", row))}</td>
              <td class="number">{countText(read.number("count", row))}</td>
              <td class="number">{timeText(read.number("longest", row))}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {page.total > page.rows && <p class="muted">and {countText(page.total - page.rows)} more rows</p>}
    </div>
  );
}
