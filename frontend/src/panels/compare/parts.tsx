// The parts of a step before and after: two bars on one scale, and the differences.

import { useMemo } from "preact/hooks";
import type { StackPart } from "../../parts/charts/stack.tsx";
import { Stack, Swatch } from "../../parts/charts/stack.tsx";
import { STEP_PARTS } from "../../parts/steps/stepparts.ts";
import type { FullTable } from "../../parts/data/full-table.ts";
import { number, textAt } from "../../parts/data/full-table.ts";
import { timeText } from "../../units.ts";
import type { PanelProps } from "../panel.ts";
import type { Side } from "./trees/deltas.ts";
import { differenceRows } from "./tables/merging.ts";
import { Sheet } from "./tables/sheet.tsx";

const SIDES: readonly (readonly [Side, string])[] = [["before", "Before"], ["after", "After"]];

export function Parts(props: { parts: FullTable; params: PanelProps["params"] }) {
  const { parts, params } = props;
  const rows = useMemo(
    () => differenceRows(parts, ["part"]).map((row) => ({ ...row, key: [partOf(String(row.key[0])).label] })),
    [parts],
  );
  const most = Math.max(...SIDES.map(([side]) => parts.totals[side] ?? 0));
  if (parts.rows === 0) return null;
  return (
    <section class="compare-section" aria-label="What a step is made of">
      <h2>What a step is made of <span class="muted">on average</span></h2>
      <div class="compare-bars">
        {SIDES.map(([side, title]) => (
          <Bar key={side} parts={parts} side={side} title={title} share={most > 0 ? (parts.totals[side] ?? 0) / most : 0} />
        ))}
        <Legend parts={parts} />
      </div>
      <Sheet
        rows={rows} heads={["Part of a step"]} params={params} inOrder word="sort-parts" find="" linkTo={null} totals label="Parts of a step"
      />
    </section>
  );
}

function Bar(props: { parts: FullTable; side: Side; title: string; share: number }) {
  const { parts, side, title, share } = props;
  const stack = Array.from({ length: parts.rows }, (_, row): StackPart => {
    const size = number(parts, side, row) ?? 0;
    return { ...partOf(textAt(parts, "part", row) ?? ""), size, text: timeText(size) };
  });
  return (
    <>
      <span>{title}</span>
      <div><div style={{ width: `${100 * share}%` }}><Stack parts={stack} label={`A step ${side}`} legend={false} height={22} /></div></div>
      <span class="number">{timeText(parts.totals[side] ?? 0)}</span>
    </>
  );
}

function Legend(props: { parts: FullTable }) {
  const names = Array.from({ length: props.parts.rows }, (_, row) => textAt(props.parts, "part", row) ?? "");
  return (
    <p class="compare-legend" aria-hidden="true">
      {names.map(partOf).map(({ label, colour }) => <span key={label}><Swatch colour={colour} /> {label}</span>)}
    </p>
  );
}

function partOf(name: string): { label: string; colour: string } {
  return STEP_PARTS.find((known) => known.column === name) ?? { label: name.replaceAll("_", " "), colour: "other" };
}
