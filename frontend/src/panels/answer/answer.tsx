// The panel of the advice: health, step, and the same sections as in the terminal. Facts from
// views are shown while the advice, which takes longer, is loading.

import type { Advice } from "../../data/api.ts";
import { QueryResult, useQuery } from "../../parts/data/asking.tsx";
import { Stack } from "../../parts/charts/stack.tsx";
import { link } from "../../route.ts";
import { text } from "../../units.ts";
import type { PanelProps } from "../panel.ts";
import { background } from "./step/background.ts";
import type { Background, Mix } from "./step/background.ts";
import { CopyButton } from "./findings/copy.tsx";
import { AccountSection } from "./account/account.tsx";
import { Findings } from "./findings/findings.tsx";
import { HeaviestSection } from "./heaviest.tsx";
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
  const { data, trace, params, known } = props;
  const asked = useQuery(() => data.advice(trace.id), trace.id);
  const advice = asked.state === "here" && !asked.stale ? asked.value : null;
  const rule = params["rule"];
  return (
    <div class="answer">
      <h1 class="visually-hidden">Answer</h1>
      <Head known={known} advice={advice} />
      {known.health.verdict !== "unusable" && (
        <>
          {advice !== null && advice.said.account !== null && (
            <AccountSection advice={advice} account={advice.said.account} />
          )}
          <section class="answer-section">
            <h2>Do this</h2>
            <QueryResult asked={asked} what="the trace once more for every rule">
              {(found) => <Findings {...props} advice={found} />}
            </QueryResult>
          </section>
          <HeaviestSection data={data} trace={trace} hasDevice={known.hasDevice} />
        </>
      )}
      {advice !== null && <CheckedSection advice={advice} />}
      {advice !== null && <UnknownSection advice={advice} hasPages={!data.inline} />}
      {rule !== undefined && <RuleSheet key={rule} data={data} rule={rule} />}
    </div>
  );
}

function Head(props: { known: Background; advice: Advice | null }) {
  const { known, advice } = props;
  return (
    <>
      <header class="answer-head">
        <HealthNotes health={known.health} />
        {advice !== null && <CopyButton text={advice.said.markdown}>Copy all as Markdown</CopyButton>}
      </header>
      {known.health.verdict !== "unusable" && (
        <>
          <Figures known={known} advice={advice} />
          {known.mix.length > 0 && !advice?.said.account && <StepMix mix={known.mix} />}
        </>
      )}
    </>
  );
}

function StepMix(props: { mix: Mix }) {
  const whole = props.mix.reduce((sum, { mean }) => sum + mean, 0);
  const parts = props.mix.map(({ part, mean }) => ({
    label: part.label,
    colour: part.colour,
    size: mean,
    text: text(mean / whole, "ratio"),
  }));
  return (
    <div class="answer-mix">
      <Stack parts={parts} label="The average step" height={12} />
      <a class="answer-more" href={link("overview")}>Overview</a>
    </div>
  );
}
