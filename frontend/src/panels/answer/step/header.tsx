// The head of the panel: the trace's health, the step now and with all changes, what bounds it, the run.

import type { Advice, Headline, Health } from "../../../data/advice.ts";
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

/** The key figures; what the advice adds has its place before it is here. */
export function Figures(props: { known: Background; advice: Advice | null; hasRanks: boolean }) {
  const { known, advice, hasRanks } = props;
  const said = advice?.said ?? null;
  const account = said?.account ?? null;
  if (known.typical === null && said?.headline == null) return null;
  const bound = account === null ? known.bound : account.bound_by;
  const meaning = account === null ? known.meaning : account.spent;
  return (
    <>
      {(said === null ? hasRanks : said.job !== null) && (
        <p class="answer-job"><a href={link("distributed")}>Job</a> <TraceText text={said?.job ?? "…"} /></p>
      )}
      <dl class="answer-figures">
        {said?.headline
          ? <Step headline={said.headline} />
          : <div class="answer-step"><dt>A step</dt><dd class="answer-big">{millisecondsText(known.typical ?? 0)}</dd></div>}
        {bound !== null && (
          <div class="answer-regime">
            <dt>Bound by</dt>
            <dd class="answer-word">{bound}</dd>
            {meaning !== null && <dd class="muted"><a href={link(account === null ? "overview" : "account")}><TraceText text={meaning} /></a></dd>}
          </div>
        )}
        {said?.run && (
          <div class="answer-run">
            <dt><a href={link("run")}>The run</a></dt>
            <dd class="muted"><TraceText text={said.run} /></dd>
          </div>
        )}
      </dl>
    </>
  );
}

/** The step now, and with all changes: both on one basis. */
function Step(props: { headline: Headline }) {
  const { title, now, step, after, range, speedup } = props.headline;
  return (
    <div class="answer-step">
      <dt>{title}</dt>
      <dd class="answer-big">
        {now}
        {after !== null && <><span class="answer-arrow" role="img" aria-label="becomes"> → </span>{after}</>}
      </dd>
      {speedup !== null && <dd>{speedup}{range !== null && <span class="muted">, likely {range}</span>}</dd>}
      <dd class="muted"><a href={link("steps")}>{step}</a></dd>
    </div>
  );
}
