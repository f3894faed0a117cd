// The controls of the critical path: which step, and the legend with the time of each kind.

import { cell, number, textAt } from "../../parts/data/full-table.ts";
import type { FullTable } from "../../parts/data/full-table.ts";
import { labelOfValue } from "../../parts/data/labels.ts";
import type { Labels } from "../../parts/data/labels.ts";
import { plain } from "../../parts/text/plain.ts";
import { change } from "../../route.ts";
import { timeText, shareText } from "../../units.ts";
import { KIND_COLOURS } from "./band.ts";

/** More steps than this make no list to choose from: the others are told by the address. */
const LISTED = 500;
/** Rows, filters and stretches are those of one step. */
const ANEW = { from: undefined, to: undefined, at: undefined, row: undefined };

export function StepChoice(props: { steps: FullTable; step: string; isReport: boolean }) {
  const { steps, step, isReport } = props;
  const rows = Array.from({ length: Math.min(steps.rows, LISTED) }, (_, row) => row);
  const isMarked = textAt(steps, "source", 0) !== "window";
  if (!isMarked) return <span class="muted">No steps are marked: the whole recording counts as one.</span>;
  const known = new Set(["typical", "all", ...rows.map((row) => String(cell(steps, "step", row)))]);
  return (
    <label class="path-step">
      <span class="muted">Step</span>
      <select aria-label="Step" value={step} onChange={(event) => change({ step: event.currentTarget.value === "typical" ? undefined : event.currentTarget.value, ...ANEW })}>
        <option value="typical">typical (median time)</option>
        <option value="all">all that are recorded</option>
        {!known.has(step) && <option value={step}>{plain(step)}</option>}
        {!isReport && rows.map((row) => (
          <option key={row} value={String(cell(steps, "step", row))}>
            {`${cell(steps, "step", row)}: ${timeText(number(steps, "time", row) ?? 0)}${cell(steps, "counted", row) === true ? "" : ", not counted"}`}
          </option>
        ))}
      </select>
    </label>
  );
}

export function Legend(props: { kinds: FullTable; labels: Labels }) {
  const { kinds, labels } = props;
  const rows = Array.from({ length: kinds.rows }, (_, row) => row);
  return (
    <ul class="path-legend" aria-label="What the path is spent on">
      {rows.map((row) => {
        const kind = textAt(kinds, "kind", row) ?? "unknown";
        const { text, doc } = labelOfValue(labels, kind);
        return (
          <li key={kind} title={doc}>
            <i style={{ background: `var(--${KIND_COLOURS[kind] ?? "other"})` }} aria-hidden="true" />
            {text} <b>{shareText(number(kinds, "share", row) ?? 0)}</b>{" "}
            <span class="muted">{timeText(number(kinds, "time", row) ?? 0)}</span>
          </li>
        );
      })}
    </ul>
  );
}
