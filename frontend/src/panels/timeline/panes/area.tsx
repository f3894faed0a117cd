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
import { loadAllRows } from "../tiles/store.ts";
import { Compared } from "./compared.tsx";
import { SideBySide } from "./side-by-side.tsx";
import { MEASURES } from "./statistics.ts";
import type { Measure } from "./statistics.ts";
import { cellReader } from "../tiles/cell-reader.ts";
import type { Area } from "../drawing/viewport.ts";

const BY = [
  ["name", "by name"],
  ["category", "by category"],
  ["track", "by track"],
] as const;
const TOP = 200;
const COLUMNS = ["what", "category", ...MEASURES, "id"];
/** Categories of the program's slices, without the recorder's and duplicates of annotations. */
const PROGRAM = "host,python,device,other";

export function AreaPane(props: PanelProps & { controller: TimelineController; area: Area }) {
  const { controller, area } = props;
  const [by, group] = useState<string>("name");
  const [place, turn] = useState<number | null>(null);
  const [measure, choose] = useState<Measure>("self");
  const marked = controller.sources.filter((one) => isTrace(one) && (area.tracks === null || numbersOf(area, one).length > 0));
  const one = marked.find((known) => known.at === place) ?? (marked.length > 1 ? null : (marked[0] ?? controller.of(0)));
  return (
    <section class="timeline-details" aria-label="Statistics of the marked area">
      <header>
        <h2>{timeText(area.to - area.from)} marked</h2>
        <span class="muted">
          from {instantText(area.from)} to {instantText(area.to)}, {area.tracks === null ? "all tracks" : `${area.tracks.length} tracks`}
        </span>
        {marked.length > 1 && (
          <span class="timeline-choice" role="group" aria-label="Trace">
            <button type="button" aria-pressed={one === null} onClick={() => turn(null)}>{marked.length === 2 ? "both" : "side by side"}</button>
            {marked.map((known) => (
              <button key={known.at} type="button" aria-pressed={known === one} onClick={() => turn(known.at)}>{plain(known.label)}</button>
            ))}
          </span>
        )}
        {one === null && <Choices label="Amount" value={measure} choices={MEASURES.map((name) => [name, name])} onChange={choose} />}
        <Choices label="Rows" value={by} choices={BY} onChange={group} />
        <Compared controller={controller} />
        <button type="button" class="quiet" title="Fit (F)" onClick={() => controller.fit()}>Fit</button>
        <button type="button" class="quiet" title="Close (Esc)" aria-label="Close" onClick={() => controller.mark(null)}>×</button>
      </header>
      {one === null
        ? <Several {...props} sources={marked} by={by} measure={measure} />
        : <Single {...props} of={one} by={by} />}
    </section>
  );
}

function Choices<T extends string>(props: { label: string; value: T; choices: readonly (readonly [T, string])[]; onChange: (value: T) => void }) {
  return (
    <span class="timeline-choice" role="group" aria-label={props.label}>
      {props.choices.map(([name, title]) => (
        <button key={name} type="button" aria-pressed={props.value === name} onClick={() => props.onChange(name)}>{title}</button>
      ))}
    </span>
  );
}

type AreaProps = PanelProps & { controller: TimelineController; area: Area; by: string };

/** What is asked of a trace: the area by its own clock, on its own tracks. */
function optionsOf(area: Area, of: Source, by: string) {
  const tracks = area.tracks === null ? PROGRAM : numbersOf(area, of).join(",");
  const [from, to] = [Math.round(ownTime(of, area.from)), Math.round(ownTime(of, area.to))];
  return { start: from, end: Math.max(to, from + 1) || 1, tracks, by };
}

function Single({ data, controller, area, by, of }: AreaProps & { of: Source }) {
  const options = optionsOf(area, of, by);
  const asked = useQuery(() => data.page(of.trace, "selection", options, { rows: TOP }), JSON.stringify([of.trace, options]));
  if (options.tracks === "") return <p class="muted timeline-stats">Counters have no slices; mark tracks of threads or streams.</p>;
  return <QueryResult asked={asked}>{(page) => <Rows page={page} controller={controller} of={of} />}</QueryResult>;
}

/** All rows are asked for: what is missing among the first rows of a trace need not be missing in it. */
function Several({ data, controller, area, by, sources, measure }: AreaProps & { sources: readonly Source[]; measure: Measure }) {
  const all = sources.map((of) => [of.trace, optionsOf(area, of, by)] as const);
  const ask = () => Promise.all(all.map(([trace, options]) => loadAllRows((...words) => data.page(trace, "selection", ...words), options, { columns: COLUMNS })));
  const asked = useQuery(async () => ({ pages: await ask(), sources }), JSON.stringify(all));
  return <QueryResult asked={asked}>{(found) => <SideBySide {...found} controller={controller} area={area} measure={measure} />}</QueryResult>;
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
