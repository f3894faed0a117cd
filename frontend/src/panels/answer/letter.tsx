// The head of the answer: whether the trace can be trusted, what a step takes, what bounds it.

import type { Advice } from "../../api.ts";
import { Said } from "../../parts/said.tsx";
import { link } from "../../route.ts";
import type { Background } from "./background.ts";
import { stepOf } from "./step.ts";
import * as wording from "./wording.ts";

/** A step that recording slows by more than this share is told without it. */
const SLOWED = 0.02;
const MARKS = { good: "✓", degraded: "!", unusable: "✕" } as const;

export function Health(props: { health: Advice["health"] }) {
  const { verdict, notes } = props.health;
  const [word = "", rest = ""] = wording.HEALTH[verdict].split(/(?=:)/);
  return (
    <section class="answer-health" data-verdict={verdict} aria-label="Health">
      <p>
        <span class="answer-mark" aria-hidden="true">{MARKS[verdict]}</span>{" "}
        <a href={link("health")}><b>{word}</b></a>{rest}
      </p>
      {notes.length > 0 && (
        <ul>{notes.map((note, at) => <li key={at}><Said text={note.text} /></li>)}</ul>
      )}
    </section>
  );
}

/** The numbers that a reader wants first; what only the rules know comes when they have answered. */
export function Figures(props: { known: Background; advice: Advice | null }) {
  const { known, advice } = props;
  const step = advice?.step ?? null;
  const time = step?.device_ms ?? step?.host_ms ?? known.typical;
  const regime = step?.regime ?? known.regime;
  if (time === null) return null;
  return (
    <dl class="answer-figures">
      <div>
        <dt>{step?.count === 0 ? "The recording" : "A step"}</dt>
        <dd class="answer-big">{wording.milliseconds(time)}</dd>
        <dd class="muted"><a href={link("steps")}>{step === null ? "…" : wording.stepText(step)}</a></dd>
      </div>
      {advice !== null && <Promise advice={advice} typical={time} />}
      {regime !== null && (
        <div class="answer-regime">
          <dt>Bound by</dt>
          <dd class="answer-word">{regime}</dd>
          {known.meaning !== null && <dd class="muted">{known.meaning}</dd>}
        </div>
      )}
    </dl>
  );
}

/** What all changes that keep the results come to together. */
function Promise(props: { advice: Advice; typical: number | null }) {
  const { typical } = props;
  const { joint, findings } = props.advice;
  const estimate = joint?.estimate_ms ?? null;
  const speedup = joint?.speedup ?? null;
  const before = stepOf(estimate, speedup);
  if (findings.length === 0 || estimate === null || speedup === null || before === null) return null;
  const isSlowed = typical !== null && before < (1 - SLOWED) * typical;
  return (
    <div>
      <dt>{findings.length === 1 ? "With the change below" : "With the changes below"}</dt>
      <dd class="answer-big">{wording.milliseconds(before - estimate)}</dd>
      <dd class="muted">
        {wording.speedupText(speedup)}
        {isSlowed && `, from ${wording.milliseconds(before)} where nobody records`}
      </dd>
    </div>
  );
}
