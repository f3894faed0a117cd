// Of which findings and rows of the account a slice is a part. The advice is computed only if asked for.

import "./numbers.css";
import { useEffect, useState } from "preact/hooks";
import type { Data } from "../../data/api.ts";
import type { KnownNumbers, NumberOfSlice } from "../../data/numbers.ts";
import { current, formatRoute, link } from "../../route.ts";
import { useQuery } from "../data/asking.tsx";
import { TraceText } from "../text/trace-text.tsx";
import { relationText } from "./relations.ts";

/** `here` says whether the slice is shown in the timeline, where a click highlights what it is part of. */
export function PartOf(props: { data: Data; trace: string; slice: number; here?: boolean; title?: string }) {
  const { data, trace, slice, here = false, title = "Part of" } = props;
  const [isAsked, ask] = useState(false);
  useEffect(() => ask(false), [trace]);
  const answer = useQuery(() => data.numbersOfSlice(trace, slice, isAsked), `${trace} ${slice} ${isAsked}`);
  return (
    <div class="part-of" data-here={here} aria-busy={isAsked && answer.state === "waiting"}>
      <h3>{title}</h3>
      {answer.state === "failed" && <p class="muted">{answer.error}</p>}
      {answer.state === "waiting" && isAsked && <p class="muted" role="status">Reading the trace for every rule …</p>}
      {answer.state === "here" && !answer.stale && (
        <Told known={answer.value} inline={data.inline} here={here} onAsk={() => ask(true)} />
      )}
    </div>
  );
}

function Told(props: { known: KnownNumbers<NumberOfSlice>; inline: boolean; here: boolean; onAsk: () => void }) {
  const { known: { known, numbers }, inline, here, onAsk } = props;
  if (!known) {
    return (
      <p>
        <span class="muted">The findings of this trace are not known yet. </span>
        <button type="button" class="quiet" onClick={onAsk}>Find them</button>
      </p>
    );
  }
  if (numbers.length === 0) {
    return <p class="muted">{NONE}{inline && ", as far as this report carries their slices"}.</p>;
  }
  return <>{numbers.map((number) => <One key={number.of} number={number} here={here} />)}</>;
}

const NONE = "No finding, and no row of the account, which has what the counted steps wait for";

function One(props: { number: NumberOfSlice; here: boolean }) {
  const { number, here } = props;
  const { panel, params } = current();
  const shown = here ? formatRoute({ panel, params: { ...params, of: number.of } }) : link("timeline", { of: number.of });
  return (
    <p>
      <span class="muted">{relationText(number)} </span>
      <a href={link("answer", number.answer)}><TraceText text={number.title} /></a>
      {" "}({number.detail}) · <a href={shown} title={`In the timeline: ${number.text}`}>{number.text}</a>
    </p>
  );
}
