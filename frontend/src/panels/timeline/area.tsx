// Statistics of a marked stretch of time.

import { useState } from "preact/hooks";
import type { Page } from "../../api.ts";
import { Answered, useAsked } from "../../parts/asking.tsx";
import { plain } from "../../parts/plain.ts";
import { countText, shareText, timeText } from "../../units.ts";
import type { PanelProps } from "../panel.ts";
import type { Desk } from "./desk.ts";
import { reader } from "./reading.ts";
import type { Area } from "./sight.ts";

const BY = [
  ["name", "by name"],
  ["category", "by category"],
  ["track", "by track"],
] as const;
const TOP = 200;
/** What the program did: the recorder's own slices, and copies of annotations, are not it. */
const PROGRAM = "host,python,device,other";

export function AreaPane(props: PanelProps & { desk: Desk; area: Area }) {
  const { data, trace, desk, area } = props;
  const [by, group] = useState<string>("name");
  const tracks = tracksOf(area);
  const options = {
    start: Math.round(area.from),
    end: Math.max(Math.round(area.to), Math.round(area.from) + 1) || 1,
    tracks,
    by,
  };
  const key = JSON.stringify([trace.id, options]);
  const asked = useAsked(() => data.page(trace.id, "selection", options, { rows: TOP }), key);
  return (
    <section class="timeline-details" aria-label="Statistics of the marked area">
      <header>
        <h2>{timeText(area.to - area.from)} marked</h2>
        <span class="muted">
          from {timeText(area.from)} to {timeText(area.to)}, {area.tracks === null ? "all tracks" : `${area.tracks.length} tracks`}
        </span>
        <span class="timeline-choice" role="group" aria-label="Rows">
          {BY.map(([name, title]) => (
            <button key={name} type="button" aria-pressed={by === name} onClick={() => group(name)}>{title}</button>
          ))}
        </span>
        <button type="button" class="quiet" title="Fit (F)" onClick={() => desk.fit()}>Fit</button>
        <button type="button" class="quiet" title="Close (Esc)" aria-label="Close" onClick={() => desk.mark(null)}>×</button>
      </header>
      {tracks === "" ? <p class="muted timeline-stats">Counters have no slices; mark tracks of threads or streams.</p> : <Answered asked={asked}>{(page) => <Rows page={page} area={area} desk={desk} />}</Answered>}
    </section>
  );
}

/** Numbers of the tracks; counters have no slices. */
function tracksOf(area: Area): string {
  if (area.tracks === null) return PROGRAM;
  return area.tracks.filter((key) => key.startsWith("t")).map((key) => key.slice(1)).join(",");
}

function Rows(props: { page: Page; area: Area; desk: Desk }) {
  const { page, desk } = props;
  const read = reader(page);
  const rows = Array.from({ length: page.rows }, (_, row) => row);
  if (rows.length <= 1) return <p class="muted">No slice lies in this area.</p>;
  const share = (row: number) => shareText(read.number("share", row) || 0);
  return (
    <div class="timeline-stats">
      <table>
        <thead>
          <tr>
            <th scope="col">what</th>
            <th scope="col" class="number" title="Time in which it was the innermost of its track">self</th>
            <th scope="col" class="number" title="Time in which one of them was open: their union">busy</th>
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
                  <button type="button" class="timeline-link" title="Go to the longest" onClick={() => void desk.open(read.number("id", row))}>
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
