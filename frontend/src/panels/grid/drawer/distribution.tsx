// How long the slices lasted: a histogram, with their median and 95th percentile.

import { countText, timeText } from "../../../units.ts";
import type { Bins } from "./bins.ts";
import { placeOf, ticksOf, widthOf } from "./bins.ts";

const WIDTH = 380;
const HEIGHT = 92;
const TOP = 16;
const BASE = HEIGHT - 16;
const SIDE = 6;
const APART = 42;
const LETTER = 6.2;

interface Props {
  bins: Bins;
  count: number;
  median: number | null;
  p95: number | null;
}

export function Distribution(props: Props) {
  const { bins, count, median, p95 } = props;
  const across = (place: number) => SIDE + place * (WIDTH - 2 * SIDE);
  const bar = Math.max(1, widthOf(bins) * (WIDTH - 2 * SIDE) - 0.5);
  const said = [
    `${countText(count)} slices`,
    ...(median === null ? [] : [`median ${timeText(median)}`]),
    ...(p95 === null ? [] : [`95 % within ${timeText(p95)}`]),
  ].join(", ");
  return (
    <svg class="drawer-histogram" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={`Durations: ${said}`}>
      <line class="drawer-axis" x1={0} x2={WIDTH} y1={BASE + 0.5} y2={BASE + 0.5} />
      {bins.bins.map((bin) => {
        const height = Math.max(1.5, (bin.count / bins.most) * (BASE - TOP));
        return (
          <rect key={bin.from} x={across(placeOf(bins, bin.from))} y={BASE - height} width={bar} height={height}>
            <title>{`from ${timeText(bin.from)}: ${countText(bin.count)} slices, ${timeText(bin.time)} in all`}</title>
          </rect>
        );
      })}
      {apart(ticksOf(bins).map(({ at, text }) => ({ x: held(across(at)), text }))).map(({ x, text }) => (
        <text key={text} class="drawer-tick" x={x} y={HEIGHT - 3}>{text}</text>
      ))}
      <Marks marks={[["median", median], ["p95", p95]]} across={(value) => across(placeOf(bins, value))} />
    </svg>
  );
}

/** So that a text at the end of the scale is not cut. */
function held(x: number): number {
  return Math.max(18, Math.min(x, WIDTH - 18));
}

/** Without those that would touch the one before. */
function apart(ticks: { x: number; text: string }[]): { x: number; text: string }[] {
  return ticks.reduce<{ x: number; text: string }[]>((kept, tick) => {
    const last = kept.at(-1);
    return last !== undefined && tick.x - last.x < APART ? kept : [...kept, tick];
  }, []);
}

/** The middle of each name above its line, moved so far that none is cut or covers the other. */
function Marks(props: { marks: [string, number | null][]; across: (value: number) => number }) {
  const known = props.marks.flatMap(([name, value]) => (value === null ? [] : [{ name, x: props.across(value) }]));
  let room = WIDTH;
  const names = known.toReversed().map(({ name, x }) => {
    const half = (name.length * LETTER) / 2;
    const middle = Math.max(half, Math.min(x, room - half));
    room = middle - half - LETTER;
    return { name, x, middle };
  });
  return (
    <>
      {names.map(({ name, x, middle }) => (
        <g key={name} class="drawer-mark">
          <line x1={x} x2={x} y1={TOP - 3} y2={BASE} />
          <text x={middle} y={10} text-anchor="middle">{name}</text>
        </g>
      ))}
    </>
  );
}
