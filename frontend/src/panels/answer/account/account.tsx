// What the step is spent on: one bar, and one table of its largest rows with a verdict.

import "./account.css";
import type { AccountKind, AccountPart, AccountTexts } from "../../../data/account.ts";
import type { Advice } from "../../../data/advice.ts";
import { Stack } from "../../../parts/charts/stack.tsx";
import { TraceText } from "../../../parts/text/trace-text.tsx";
import { link } from "../../../route.ts";
import { CLASS_COLOURS } from "./colours.ts";
import { AccountTable } from "./table.tsx";

/** Smallest share of the step that the bar can show. */
const LEAST_SHOWN = 0.005;

export function AccountSection(props: { advice: Advice; account: AccountTexts; params: Readonly<Record<string, string>> }) {
  const { advice, account, params } = props;
  return (
    <section class="answer-section account" aria-label={account.title}>
      <h2>{account.title} <span class="answer-basis">{account.step} {account.basis}</span></h2>
      <Stack parts={bar(account.parts)} label={account.title} height={16} />
      <AccountTable advice={advice} account={account} params={params} />
      {account.kinds.length > 0 && <Kinds title={account.kinds_title} kinds={account.kinds} />}
    </section>
  );
}

function bar(parts: readonly AccountPart[]) {
  return parts.filter((part) => part.share >= LEAST_SHOWN).map((part) => ({
    label: part.label,
    colour: CLASS_COLOURS[part.class] ?? "other",
    size: part.share,
    text: part.text,
  }));
}

/** The kinds of steps, each with its own mean; a kind's name opens its account. */
function Kinds(props: { title: string; kinds: readonly AccountKind[] }) {
  return (
    <>
      <p class="account-kinds-title">{props.title}</p>
      <ul class="account-kinds">
        {props.kinds.map((kind) => (
          <li key={kind.name}>
            <a href={link("account", { kind: kind.name })}>{kind.name}</a>
            <span class="number muted">{kind.count}</span>
            <span class="number">{kind.time}</span>
            <span class="account-kind-bar">
              <Stack parts={bar(kind.parts)} label={`${kind.name}: ${kind.spent}`} height={8} legend={false} />
            </span>
            <span class="account-kind-what">bound by {kind.bound_by}: <TraceText text={kind.spent} /></span>
          </li>
        ))}
      </ul>
    </>
  );
}
