// Statistics of the marked area in several traces, a column for each.

import type { Page } from "../../../data/api.ts";
import { plain } from "../../../parts/text/plain.ts";
import { countText, instantText, timeText } from "../../../units.ts";
import { signed } from "../../compare/tables/signed.ts";
import type { TimelineController } from "../input/controller.ts";
import type { Area } from "../drawing/viewport.ts";
import { ownTime, shownId } from "../tracks/sources.ts";
import type { Source } from "../tracks/sources.ts";
import { comparedRows, difference } from "./statistics.ts";
import type { Amounts, ComparedRow, Measure } from "./statistics.ts";

const MOST_ROWS = 200;

interface Props {
  controller: TimelineController;
  area: Area;
  sources: readonly Source[];
  pages: readonly Page[];
  measure: Measure;
}

export function SideBySide({ controller, area, sources, pages, measure }: Props) {
  const rows = comparedRows(pages, measure);
  if (rows.length <= 1) return <p class="muted">This area has no slices.</p>;
  const isPair = sources.length === 2;
  const hasCounts = isPair && measure !== "count";
  const columns = (of: Measure) =>
    sources.map((source) => (
      <th key={`${of} ${source.at}`} scope="col" class="number" title={titleOf(source, of, area)}>
        {of === measure ? "" : "count "}{plain(source.label)}
      </th>
    ));
  const cells = (row: ComparedRow, of: Measure) =>
    sources.map((source, at) => <Amount key={`${of} ${source.at}`} amounts={row.amounts[at] ?? null} of={of} source={source} controller={controller} />);
  return (
    <div class="timeline-stats timeline-side-by-side">
      <table>
        <thead>
          <tr>
            <th scope="col">what</th>
            {columns(measure)}
            {isPair && <th scope="col" class="number" title={`${measure} in the second trace less that in the first`}>difference</th>}
            {hasCounts && columns("count")}
          </tr>
        </thead>
        <tbody>
          {rows.slice(0, MOST_ROWS).map((row, at) => (
            <tr key={at} class={at === 0 ? "timeline-sum" : undefined}>
              <th scope="row" title={plain(row.what.slice(0, 2000))}>
                {plain(row.what.slice(0, 300))} <span class="muted">{plain(row.category)}</span>
              </th>
              {cells(row, measure)}
              {isPair && <td class="number">{signed(difference(row, measure), measure === "count" ? "count" : "ns")}</td>}
              {hasCounts && cells(row, "count")}
            </tr>
          ))}
        </tbody>
      </table>
      {rows.length > MOST_ROWS && <p class="muted">and {countText(rows.length - MOST_ROWS)} more rows</p>}
    </div>
  );
}

/** A dash where the trace has no such slice in the area. */
function Amount(props: { amounts: Amounts | null; of: Measure; source: Source; controller: TimelineController }) {
  const { amounts, of, source, controller } = props;
  if (amounts === null) return <td class="number muted" title={`no such slice in ${plain(source.label)}`}>-</td>;
  if (of === "count") return <td class="number">{countText(amounts.count)}</td>;
  return (
    <td class="number">
      <button type="button" class="timeline-link" title={`Go to the longest in ${plain(source.label)}`} onClick={() => void controller.open(shownId(source, amounts.id))}>
        {timeText(amounts[of])}
      </button>
    </td>
  );
}

const WHAT: Record<Measure, string> = {
  self: "Time in which it was the innermost slice of its track",
  busy: "Time in which at least one of them was running",
  total: "Sum of their durations within the area",
  count: "Number of slices",
  longest: "The longest, within the area",
};

function titleOf(source: Source, measure: Measure, area: Area): string {
  const [from, to] = [area.from, area.to].map((time) => instantText(Math.round(ownTime(source, time))));
  return `${WHAT[measure]}, in ${plain(source.label)} from ${from} to ${to}`;
}
