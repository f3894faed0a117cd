// The head of the panel: the trace's health, the step time, and what limits it.

import type { Advice, Health } from "../../../data/api.ts";
import { HEALTH_MARKS } from "../../../parts/text/health-marks.ts";
import { TraceText } from "../../../parts/text/trace-text.tsx";
import { link } from "../../../route.ts";
import type { Background } from "./background.ts";
import { millisecondsText } from "../../../units.ts";


export function HealthNotes(props: { health: Health }) {
  const { verdict, text, notes } = props.health;
  return (
    <section class="answer-health" data-verdict={verdict} aria-label="Health">
      <p>
        <span class="answer-mark" aria-hidden="true">{HEALTH_MARKS[verdict]}</span>{" "}
        <a href={link("health")}>{text}</a>
      </p>
      {notes.length > 0 && (
        <ul>{notes.map((note, at) => <li key={at}><TraceText text={note} /></li>)}</ul>
      )}
    </section>
  );
}

/** The key figures; those from the advice appear when it has loaded. */
export function Figures(props: { known: Background; advice: Advice | null }) {
  const { known, advice } = props;
  const step = advice?.step ?? null;
  const time = step?.device_ms ?? step?.host_ms ?? known.typical;
  const account = advice?.said.account ?? null;
  if (time === null) return null;
  return (
    <>
      {advice?.said.job && (
        <p class="answer-job"><a href={link("distributed")}>Job</a> <TraceText text={advice.said.job} /></p>
      )}
      <dl class="answer-figures">
        <div>
          <dt>{account?.step_title ?? (step?.count === 0 ? "The recording" : "A step")}</dt>
          <dd class="answer-big">{account === null ? millisecondsText(time) : account.step}</dd>
          <dd class="muted"><a href={link("steps")}>{advice === null ? "…" : advice.said.step}</a></dd>
        </div>
        {advice?.said.with_all_fixes && <WithAllFixes {...advice.said.with_all_fixes} />}
        {account !== null && (
          <div class="answer-regime">
            <dt>Bound by</dt>
            <dd class="answer-word">{account.bound_by}</dd>
            <dd class="muted"><a href={link("account")}><TraceText text={account.spent} /></a></dd>
          </div>
        )}
        {account === null && known.bound !== null && (
          <div class="answer-regime">
            <dt>Bound by</dt>
            <dd class="answer-word">{known.bound}</dd>
            {known.meaning !== null && <dd class="muted">{known.meaning}</dd>}
          </div>
        )}
      </dl>
    </>
  );
}

/** The step with all changes that keep results the same. */
function WithAllFixes(props: NonNullable<Advice["said"]["with_all_fixes"]>) {
  const { title, time, text } = props;
  return (
    <div>
      <dt>{title}</dt>
      <dd class="answer-big">{time}</dd>
      <dd class="muted">{text}</dd>
    </div>
  );
}
