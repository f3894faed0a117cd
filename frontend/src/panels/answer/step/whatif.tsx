// The step before and after a change, on one scale; the saving is hatched.

import "./whatif.css";
import type { Advice, Finding } from "../../../data/api.ts";
import type { Mix } from "./background.ts";
import { stepOf, whatIf } from "./step.ts";
import { millisecondsText } from "../../../units.ts";

export function WhatIfPicture(props: { advice: Advice; finding: Finding; mix: Mix }) {
  const { advice, finding, mix } = props;
  const found = whatIf(finding.saving, advice.step);
  if (found === null) return <p class="muted">How long the step would take cannot be predicted.</p>;
  const { before, after, shortest, longest } = found;
  const joint = jointly(advice, before);
  return (
    <div class="whatif" role="img" aria-label={said(found, joint)}>
      <span>now</span>
      <span class="whatif-bar"><Mixed mix={mix} /></span>
      <b>{millisecondsText(before)}</b>
      <span>with this</span>
      <span class="whatif-bar">
        <Left after={after / before} />
        <Interval from={shortest / before} to={longest / before} />
      </span>
      <b>{millisecondsText(after)}</b>
      {shortest < longest && (
        <span class="whatif-range muted">{millisecondsText(shortest)} to {millisecondsText(longest)}</span>
      )}
      {joint !== null && (
        <>
          <span>with all</span>
          <span class="whatif-bar"><Left after={joint / before} /></span>
          <b>{millisecondsText(joint)}</b>
        </>
      )}
    </div>
  );
}

/** The step with all changes, if there are several. */
function jointly(advice: Advice, before: number): number | null {
  const { joint, findings } = advice;
  const estimate = joint?.estimate_ms ?? null;
  const priced = findings.filter((finding) => finding.saving.estimate_ms !== null);
  if (priced.length < 2 || estimate === null) return null;
  return Math.max(0, (stepOf(estimate, joint?.speedup ?? null) ?? before) - estimate);
}

function said(found: NonNullable<ReturnType<typeof whatIf>>, joint: number | null): string {
  const { before, after, shortest, longest } = found;
  const range = `between ${millisecondsText(shortest)} and ${millisecondsText(longest)}`;
  const all = joint === null ? "" : `; with all changes ${millisecondsText(joint)}`;
  return `A step takes ${millisecondsText(before)} now, ${millisecondsText(after)} with this change, ${range}${all}`;
}

function Mixed(props: { mix: Mix }) {
  const whole = props.mix.reduce((sum, { mean }) => sum + mean, 0);
  if (whole === 0) return <span class="whatif-left" style={{ flexGrow: 1 }} />;
  return (
    <>
      {props.mix.map(({ part, mean }) => (
        <span
          key={part.column}
          title={`${part.label}: ${((100 * mean) / whole).toFixed(1)} %`}
          style={{ flexGrow: mean / whole, background: `var(--${part.colour})` }}
        />
      ))}
    </>
  );
}

function Left(props: { after: number }) {
  const { after } = props;
  return (
    <>
      <span class="whatif-left" style={{ flexGrow: after }} />
      <span class="whatif-gone" style={{ flexGrow: 1 - after }} />
    </>
  );
}

function Interval(props: { from: number; to: number }) {
  const { from, to } = props;
  if (from >= to) return null;
  return <i class="whatif-interval" style={{ left: `${100 * from}%`, width: `${100 * (to - from)}%` }} />;
}
