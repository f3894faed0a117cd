// The step before and after a change, on one scale; the saving is hatched.

import "./whatif.css";
import type { StepWithFix } from "../../../data/advice.ts";
import type { Mix } from "./background.ts";
import { millisecondsText, shareText } from "../../../units.ts";

export function WhatIfPicture(props: { step: StepWithFix | null; mix: Mix; change?: string }) {
  const { step, mix } = props;
  if (step === null) return <p class="muted">How long the step would take cannot be predicted.</p>;
  const { before_ms: before, after_ms: after, shortest_ms: shortest, longest_ms: longest, with_all_ms: withAll } = step;
  return (
    <div class="whatif" role="img" aria-label={step.text}>
      <span>now</span>
      <span class="whatif-bar"><Mixed mix={mix} /></span>
      <b>{millisecondsText(before)}</b>
      <span>{props.change ?? "with this"}</span>
      <span class="whatif-bar">
        <Left after={after / before} />
        <Interval from={shortest / before} to={longest / before} />
      </span>
      <b>{millisecondsText(after)}</b>
      {shortest < longest && (
        <span class="whatif-range muted">{millisecondsText(shortest)} to {millisecondsText(longest)}</span>
      )}
      {withAll !== null && (
        <>
          <span>with all</span>
          <span class="whatif-bar"><Left after={withAll / before} /></span>
          <b>{millisecondsText(withAll)}</b>
        </>
      )}
    </div>
  );
}

function Mixed(props: { mix: Mix }) {
  const whole = props.mix.reduce((sum, { mean }) => sum + mean, 0);
  if (whole === 0) return <span class="whatif-left" style={{ flexGrow: 1 }} />;
  return (
    <>
      {props.mix.map(({ part, mean }) => (
        <span
          key={part.column}
          title={`${part.label}: ${shareText(mean / whole)}`}
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
