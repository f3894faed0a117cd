// The second and third section: what is not worth a change, and what this recording cannot tell.

import type { Advice } from "../../api.ts";
import { Said } from "../../parts/said.tsx";
import { RuleLink } from "./rule.tsx";
import * as wording from "./wording.ts";

export function CheckedSection(props: { advice: Advice; root: string | null }) {
  const { advice, root } = props;
  if (advice.checked.length === 0) return null;
  const absent = wording.absentText(advice);
  return (
    <section class="answer-section">
      <h2>{wording.CHECKED}</h2>
      <dl class="answer-list">
        {wording.weighed(advice).map((checked, at) => (
          <div key={at}>
            <dt><RuleLink rule={checked.rule} /></dt>
            <dd><Said text={wording.checkedText(checked, root)} /></dd>
          </div>
        ))}
      </dl>
      {absent !== null && <p class="muted">{absent}</p>}
    </section>
  );
}

/** `hasPages` says whether every rule's page is at hand: a report carries those that said something. */
export function UnknownSection(props: { advice: Advice; root: string | null; hasPages: boolean }) {
  const { advice, root, hasPages } = props;
  if (advice.unknown.length === 0) return null;
  return (
    <section class="answer-section">
      <h2>{wording.CANNOT_TELL}</h2>
      <ul class="answer-needs">
        {wording.byNeed(advice, root).map(([needs, rules]) => (
          <li key={needs}>
            <p>needs <Said text={needs} /></p>
            <p class="answer-rules">
              {rules.map((rule, at) => (
                <span key={rule}>{at > 0 && ", "}{hasPages ? <RuleLink rule={rule} /> : rule}</span>
              ))}
            </p>
          </li>
        ))}
      </ul>
    </section>
  );
}
