// The panel of the advice: the step, what it is spent on, what to change, and the facts beside it. Facts
// come from views, while the advice, which takes longer, is loading; each has its place from the start.

import { QueryResult, useQuery } from "../../parts/data/asking.tsx";
import { Stack } from "../../parts/charts/stack.tsx";
import { text } from "../../units.ts";
import type { PanelProps } from "../panel.ts";
import { background } from "./step/background.ts";
import type { Background, Mix } from "./step/background.ts";
import { CopyButton } from "./findings/copy.tsx";
import { AccountSection } from "./account/account.tsx";
import { Facts } from "./facts/facts.tsx";
import { Findings } from "./findings/findings.tsx";
import { Figures, HealthNotes } from "./step/header.tsx";
import { CheckedSection, UnknownSection } from "./rest.tsx";
import { RuleSheet } from "./rule.tsx";

export function AnswerPanel(props: PanelProps) {
  const { data, trace } = props;
  const known = useQuery(() => background(data, trace.id), trace.id);
  return <QueryResult asked={known}>{(found) => <Advised {...props} known={found} />}</QueryResult>;
}

/** Requests the advice after the views have answered, since it takes longer. */
function Advised(props: PanelProps & { known: Background }) {
  const { data, trace, traces, params, known } = props;
  const asked = useQuery(() => data.advice(trace.id), trace.id);
  const advice = asked.state === "here" && !asked.stale ? asked.value : null;
  const rule = params["rule"];
  return (
    <div class="answer">
      <h1 class="visually-hidden">Answer</h1>
      <header class="answer-head">
        <HealthNotes health={known.health} />
        {advice !== null && <CopyButton text={advice.said.markdown}>Copy all as Markdown</CopyButton>}
      </header>
      {known.health.verdict !== "unusable" && (
        <>
          <Figures known={known} advice={advice} hasRanks={traces.some((other) => other !== trace && other.job === trace.job)} />
          <div class="answer-columns">
            <div class="answer-main">
              {advice === null
                ? asked.state !== "failed" && <AccountPlace mix={known.mix} />
                : advice.said.account !== null && <AccountSection advice={advice} account={advice.said.account} params={params} />}
              <section class="answer-section answer-findings" aria-label="Do this">
                <h2>Do this</h2>
                <QueryResult asked={asked} what="the trace once more for every rule">
                  {(found) => <Findings {...props} advice={found} />}
                </QueryResult>
              </section>
            </div>
            <Facts {...props} hasDevice={known.hasDevice} />
          </div>
        </>
      )}
      {advice !== null && <CheckedSection advice={advice} />}
      {advice !== null && <UnknownSection advice={advice} hasPages={!data.inline} />}
      {rule !== undefined && <RuleSheet key={rule} data={data} rule={rule} />}
    </div>
  );
}

/** The place of the account: until it is here, the parts of the average step. */
function AccountPlace(props: { mix: Mix }) {
  const { mix } = props;
  const whole = mix.reduce((sum, { mean }) => sum + mean, 0);
  const parts = mix.map(({ part, mean }) => ({
    label: part.label,
    colour: part.colour,
    size: mean,
    text: text(mean / whole, "ratio"),
  }));
  return (
    <section class="answer-section account-place">
      <h2>The average step</h2>
      <Stack parts={parts} label="The average step" height={16} />
    </section>
  );
}
