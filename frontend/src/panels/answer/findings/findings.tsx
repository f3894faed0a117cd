// The first section: the ranked findings.

import type { AccountTexts } from "../../../data/account.ts";
import type { Advice } from "../../../data/advice.ts";
import { TraceText } from "../../../parts/text/trace-text.tsx";
import { change } from "../../../route.ts";
import type { PanelProps } from "../../panel.ts";
import { CLASS_COLOURS } from "../account/colours.ts";
import type { Background, Mix } from "../step/background.ts";
import { FindingItem } from "./finding.tsx";
import { RangeScale } from "./range.tsx";
import { addressOf, findingAddresses, scaleOf } from "../step/step.ts";

export function Findings(props: PanelProps & { advice: Advice; known: Background }) {
  const { advice, known, params, data, trace } = props;
  const { findings, said } = advice;
  const names = findingAddresses(findings);
  const scale = scaleOf(findings);
  const mix = said.account === null ? known.mix : mixOfAccount(said.account);
  // without a word in the address the first is open; an empty word: none
  const asked = addressOf(findings, names, params["open"]);
  const open = asked ?? names[0];
  const toggle = (name: string) => change({ open: open === name ? "" : name === names[0] ? undefined : name });
  if (said.nothing_to_do !== null) {
    return (
      <>
        <p>{said.nothing_to_do}</p>
        <Unexplained advice={advice} />
      </>
    );
  }
  return (
    <>
      <RangeScale scale={scale} />
      <ol class="findings" onKeyDown={walk}>
        {findings.map((finding, at) => (
          <FindingItem
            key={names[at]}
            data={data}
            trace={trace}
            advice={advice}
            finding={finding}
            number={at + 1}
            scale={scale}
            mix={mix}
            range={known.range}
            isOpen={names[at] === open}
            isAsked={names[at] === asked}
            onToggle={() => toggle(names[at] ?? "")}
          />
        ))}
      </ol>
      {said.joint !== null && <p class="answer-joint">{said.joint}</p>}
    </>
  );
}

/** The classes of the account as parts of a step, in the colours of its bar. */
function mixOfAccount(account: AccountTexts): Mix {
  return account.parts.map(({ class: name, label, share }) => ({
    part: { column: name, label, colour: CLASS_COLOURS[name] ?? "other" },
    mean: share,
  }));
}

/** The largest unexplained rows of the account, where they are much of the step. */
function Unexplained(props: { advice: Advice }) {
  const { unexplained } = props.advice.said;
  if (unexplained.length === 0) return null;
  return <ul class="account-unexplained">{unexplained.map((text) => <li key={text}><TraceText text={text} /></li>)}</ul>;
}

/** Up and down move between the findings. */
function walk(event: KeyboardEvent): void {
  const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const list = event.currentTarget as HTMLElement;
  const all = [...list.querySelectorAll<HTMLElement>(".finding-toggle")];
  const at = all.indexOf(event.target as HTMLElement);
  if (by === undefined || at === -1) return;
  event.preventDefault();
  all[at + by]?.focus();
}
