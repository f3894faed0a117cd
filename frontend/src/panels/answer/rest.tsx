// The second and third section: minor causes, and causes that the recording cannot show.

import type { Advice } from "../../data/advice.ts";
import { TraceText } from "../../parts/text/trace-text.tsx";
import { RuleLink } from "./rule.tsx";

export function CheckedSection(props: { advice: Advice }) {
  const { checked, said } = props.advice;
  if (checked.length === 0) return null;
  return (
    <section class="answer-section">
      <h2>{said.checked_title}</h2>
      <dl class="answer-list">
        {said.checked.map(({ rule, text }, at) => (
          <div key={at}>
            <dt><RuleLink rule={rule} /></dt>
            <dd><TraceText text={text} /></dd>
          </div>
        ))}
      </dl>
      {said.absent !== null && <p class="muted">{said.absent}</p>}
    </section>
  );
}

/** `hasPages` says whether all rules have a page; a report has only those that the advice mentions. */
export function UnknownSection(props: { advice: Advice; hasPages: boolean }) {
  const { hasPages } = props;
  const { unknown, said } = props.advice;
  if (unknown.length === 0) return null;
  return (
    <section class="answer-section">
      <h2>{said.unknown_title}</h2>
      <ul class="answer-needs">
        {said.unknown.map(({ text, rules }) => (
          <li key={text}>
            <p><TraceText text={text} /></p>
            {rules.length > 0 && (
              <p class="answer-rules">
                {rules.map((rule, at) => (
                  <span key={rule}>{at > 0 && ", "}{hasPages ? <RuleLink rule={rule} /> : rule}</span>
                ))}
              </p>
            )}
          </li>
        ))}
      </ul>
    </section>
  );
}
