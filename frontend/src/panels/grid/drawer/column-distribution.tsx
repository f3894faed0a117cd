// The distribution of a column: a histogram to choose a stretch of, or the most frequent values.

import { useMemo, useRef, useState } from "preact/hooks";
import type { Column, Filter } from "../../../data/api.ts";
import { Choice } from "../../../parts/controls/choice.tsx";
import { QueryResult, useQuery } from "../../../parts/data/asking.tsx";
import { timeText, countedText, countText, shareText, text } from "../../../units.ts";
import { wordsOf } from "../cell.tsx";
import type { ColumnSource, ColumnValues } from "./column-values.ts";
import type { Scale, Spread, SpreadBin } from "./spread.ts";
import { binsOfSpread, countOffScale, filtersBetween, frequent, isListed, quantile, rangeOf, scaleAtFirst, spreadOf, within } from "./spread.ts";

interface Props {
  column: Column;
  source: ColumnSource;
  filters: readonly Filter[];
  onFilter: (filters: Filter[]) => void;
}

export function ColumnDistribution(props: Props) {
  const asked = useQuery(props.source.load, props.source.of);
  return (
    <section class="spread" aria-label="Distribution">
      <QueryResult asked={asked} what="the values">{(found) => <Shown {...props} found={found} />}</QueryResult>
    </section>
  );
}

function Shown(props: Props & { found: ColumnValues }) {
  const { found, column } = props;
  const { values, part } = found;
  if (values.length === 0) return <p class="muted">There are no rows.</p>;
  return (
    <>
      {isListed(column.unit, values) ? <Values {...props} /> : <Numbers {...props} />}
      {part !== null && <p class="muted">{part}</p>}
    </>
  );
}

const LISTED = 8;

/** The most frequent values, each a filter. */
function Values({ column, found, filters, onFilter }: Props & { found: ColumnValues }) {
  const all = useMemo(() => frequent(found.values), [found]);
  const [isAll, setAll] = useState(false);
  const shown = all.slice(0, isAll ? 100 : LISTED);
  const rows = found.values.length;
  const chosen = filters.find(({ op }) => op === "is")?.value;
  return (
    <>
      <p class="muted">{countedText(all.length, "value")} in {countedText(rows, "row")}</p>
      <ul class="spread-values">
        {shown.map(({ value, count }) => {
          const word = value === null ? "" : value === true ? "yes" : value === false ? "no" : String(value);
          const isChosen = chosen?.toLowerCase() === word.toLowerCase();
          return (
            <li key={`${typeof value} ${word}`}>
              <span class="spread-share" style={{ width: `${(100 * count) / rows}%` }} aria-hidden="true" />
              <button
                type="button"
                class="quiet"
                aria-pressed={isChosen}
                title={isChosen ? "Remove this filter" : "Only these rows"}
                onClick={() => onFilter(isChosen ? [] : [{ column: column.name, op: "is", value: word }])}
              >
                <span class="mono">{value === null ? "unknown" : wordsOf(column, value).slice(0, 200) || '""'}</span>
              </button>
              <span class="number">{countText(count)}</span>
              <span class="number muted">{shareText(count / rows)}</span>
            </li>
          );
        })}
      </ul>
      {all.length > shown.length && (isAll
        ? <p class="muted">and {countText(all.length - shown.length)} more</p>
        : <button type="button" class="quiet" onClick={() => setAll(true)}>{Math.min(all.length, 100) - LISTED} more</button>)}
    </>
  );
}

function Numbers(props: Props & { found: ColumnValues }) {
  const { column, found } = props;
  const spread = useMemo(() => spreadOf(found.values), [found]);
  const [scale, setScale] = useState<Scale>(() => scaleAtFirst(spread));
  const bins = useMemo(() => binsOfSpread(spread, scale), [spread, scale]);
  const off = countOffScale(spread, scale);
  const words = (value: number | null) => (value === null ? "-" : valueWords(value, column));
  if (spread.sorted.length === 0) return <p class="muted">No value is known in {countedText(found.values.length, "row")}.</p>;
  return (
    <>
      <p class="spread-figures">
        <span><b>{countText(spread.sorted.length)}</b> {spread.sorted.length === 1 ? "value" : "values"}</span>
        {spread.unknown > 0 && <span>{countText(spread.unknown)} unknown</span>}
        <span>median <b>{words(quantile(spread, 0.5))}</b></span>
        <span>p5 <b>{words(quantile(spread, 0.05))}</b></span>
        <span>p95 <b>{words(quantile(spread, 0.95))}</b></span>
        {found.isSummed && <span>sum <b>{words(spread.sum)}</b></span>}
      </p>
      {bins.length > 0 && <Histogram {...props} spread={spread} bins={bins} scale={scale} />}
      <Choice label="Scale" value={scale} choices={[["linear", "linear"], ["log", "log"]]} onChange={setScale} />
      {off > 0 && <p class="muted">{countedText(off, "value")} of 0 or less {off === 1 ? "is" : "are"} not on this scale.</p>}
    </>
  );
}

function valueWords(value: number, { unit }: Pick<Column, "unit">): string {
  if (unit === "ns" || unit === "instant") return timeText(value);
  return unit === "id" ? String(Number(value.toPrecision(6))) : text(value, unit);
}

const WIDTH = 316;
const HEIGHT = 96;
const TOP = 4;
const BASE = HEIGHT - 16;
/** Shorter drags choose the bin under the pointer. */
const CLICK = 4;

interface HistogramProps extends Props {
  found: ColumnValues;
  spread: Spread;
  bins: readonly SpreadBin[];
  scale: Scale;
}

/** Dragging over the bars filters the table to their values; a click on one to its own. */
function Histogram(props: HistogramProps) {
  const { bins, spread, scale, column, filters, found, onFilter } = props;
  const [drag, setDrag] = useState<readonly [number, number] | null>(null);
  const svg = useRef<SVGSVGElement>(null);
  const [low, high] = [bins[0]?.from ?? 0, bins.at(-1)?.to ?? 1];
  const place = (value: number) => placeOn(scale, Math.max(low, Math.min(value, high)), low, high) * WIDTH;
  const most = Math.max(1, ...bins.map(({ count }) => count));
  const across = (event: PointerEvent) => {
    const area = svg.current?.getBoundingClientRect();
    return area === undefined ? 0 : Math.max(0, Math.min(((event.clientX - area.left) / area.width) * WIDTH, WIDTH));
  };
  const stretch = (from: number, to: number) => {
    const touched = bins.filter((bin) => place(bin.to) > Math.min(from, to) && place(bin.from) < Math.max(from, to));
    return { low: touched[0]?.from ?? low, high: touched.at(-1)?.to ?? high };
  };
  const chosen = drag === null ? rangeOf(filters, column.unit) : stretch(...drag);
  const released = () => {
    if (drag === null) return;
    const [a, b] = drag;
    const found = Math.abs(a - b) < CLICK ? stretch(a - 0.5, a + 0.5) : stretch(a, b);
    setDrag(null);
    onFilter(filtersBetween(column.name, column.unit, found.low, found.high));
  };
  const marks = [0.05, 0.5, 0.95].map((share) => quantile(spread, share)).filter((value) => value !== null && value >= low);
  const told = chosen && within(spread, chosen.low, chosen.high);
  return (
    <>
      <svg
        ref={svg}
        class="spread-histogram"
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        role="img"
        aria-label={`Histogram of ${countText(spread.sorted.length)} values from ${valueWords(low, column)} to ${valueWords(high, column)}. The fields below filter by bounds.`}
        onPointerDown={(event) => {
          event.preventDefault();
          event.currentTarget.setPointerCapture(event.pointerId);
          setDrag([across(event), across(event)]);
        }}
        onPointerMove={(event) => drag !== null && setDrag([drag[0], across(event)])}
        onPointerUp={released}
        onPointerCancel={() => setDrag(null)}
      >
        {chosen && <rect class="spread-chosen" x={place(chosen.low)} y={0} width={Math.max(1, place(chosen.high) - place(chosen.low))} height={BASE} />}
        {bins.map((bin) => {
          const height = bin.count === 0 ? 0 : Math.max(1.5, (bin.count / most) * (BASE - TOP));
          return (
            <rect key={bin.from} class="spread-bar" x={place(bin.from)} y={BASE - height} width={Math.max(1, place(bin.to) - place(bin.from) - 0.5)} height={height}>
              <title>{`${valueWords(bin.from, column)} to ${valueWords(bin.to, column)}: ${countedText(bin.count, "row")}${sumWords(bin.sum, spread, found)}`}</title>
            </rect>
          );
        })}
        <line class="drawer-axis" x1={0} x2={WIDTH} y1={BASE + 0.5} y2={BASE + 0.5} />
        {marks.map((value, at) => <line key={at} class="spread-mark" x1={place(value ?? 0)} x2={place(value ?? 0)} y1={0} y2={BASE} />)}
        <text class="drawer-tick" x={0} y={HEIGHT - 3} style={{ textAnchor: "start" }}>{valueWords(low, column)}</text>
        <text class="drawer-tick" x={WIDTH} y={HEIGHT - 3} style={{ textAnchor: "end" }}>{valueWords(high, column)}</text>
      </svg>
      <p class="muted spread-told" role="status">
        {told === null
          ? "Drag over the bars to filter by them."
          : `${countedText(told.count, "row")}, ${shareText(told.count / spread.sorted.length)} of them${sumWords(told.sum, spread, found)}`}
      </p>
    </>
  );
}

function sumWords(sum: number, spread: Spread, { isSummed }: ColumnValues): string {
  return isSummed && spread.sum > 0 ? `; ${shareText(sum / spread.sum)} of the sum` : "";
}

function placeOn(scale: Scale, value: number, low: number, high: number): number {
  if (high <= low) return 0;
  if (scale === "linear") return (value - low) / (high - low);
  return (Math.log10(value) - Math.log10(low)) / (Math.log10(high) - Math.log10(low));
}
