// What stands beside the pointer: the rank, its group, the step, the value against the median.

import type { RankOrder } from "../../../data/api.ts";
import { plain } from "../../../parts/text/plain.ts";
import { countText, shareText, timeText } from "../../../units.ts";
import { medianOfStep, shownAt } from "./heat.ts";
import type { Cells, Heat, Pointed, Sheet } from "./heat.ts";
import type { Quantity } from "./quantities.ts";

interface TipProps {
  heat: Heat;
  sheet: Sheet;
  cells: Cells;
  pointed: Pointed;
  left: number;
  width: number;
  order: RankOrder | null;
  quantity: Quantity;
}

export function Tip(props: TipProps) {
  const { heat, sheet, cells, pointed, left, width, quantity } = props;
  const cell = shownAt(heat, sheet, cells, pointed);
  const line = sheet.lines[pointed.row];
  if (cell === null || line === undefined) return null;
  const x = left + (pointed.column + 1) * sheet.column;
  const place = x > width * 0.6 ? { right: `${width - x + sheet.column + 6}px` } : { left: `${x + 6}px` };
  const band = heat.bands.find(({ from, to }) => from <= cell.rank && cell.rank < to) ?? null;
  const shared = (line.to - line.from) * sheet.steps > 1;
  const middle = medianOfStep(heat, cell.step, band);
  return (
    <div class="job-tip" style={{ ...place, top: `${line.top + sheet.row + 2}px` }} role="presentation">
      <p>
        <b>{plain(heat.labels[cell.rank] ?? "")}, step {heat.steps[cell.step]}</b>
        {band?.title && <span class="muted">{plain(band.title)}</span>}
      </p>
      <p><span>{quantity.title}</span><b class="number">{timeText(cell.value)}</b></p>
      {middle !== null && (
        <p class="muted">
          <span>median of {band?.title ? plain(band.title) : "the ranks"} {timeText(middle)}</span>
          <span class="number">{againstText(cell.value, middle)}</span>
        </p>
      )}
      {shared && <p class="muted">the greatest of {countText(line.to - line.from)} ranks here</p>}
    </div>
  );
}

/** By how much a value is above or below the median. */
export function againstText(value: number, middle: number): string {
  const more = value - middle;
  if (more === 0) return "the same";
  const share = middle > 0 ? ` (${more < 0 ? "−" : "+"}${shareText(Math.abs(more) / middle)})` : "";
  return `${more < 0 ? "−" : "+"}${timeText(Math.abs(more))}${share}`;
}
