// The first section: what the step is spent on, as one bar and as rows with a verdict.

import "./account.css";
import type { AccountKind, AccountPart, AccountRow, AccountTexts } from "../../../data/account.ts";
import type { Advice } from "../../../data/api.ts";
import { Stack } from "../../../parts/charts/stack.tsx";
import { TraceText } from "../../../parts/text/trace-text.tsx";
import { change, link } from "../../../route.ts";
import { findingAddresses } from "../step/step.ts";
import { CLASS_COLOURS } from "./colours.ts";

export function AccountSection(props: { advice: Advice; account: AccountTexts }) {
  const { advice, account } = props;
  const shown = account.rows.slice(0, account.shown);
  const rest = account.rows.slice(account.shown);
  return (
    <section class="answer-section account">
      <h2>{account.title}</h2>
      <Stack parts={bar(account.parts)} label={account.title} height={16} />
      <Rows advice={advice} rows={shown} most={shown[0]?.share ?? 1} />
      {rest.length > 0 && (
        <details class="account-rest">
          <summary>{rest.length} smaller rows</summary>
          <Rows advice={advice} rows={rest} most={shown[0]?.share ?? 1} />
        </details>
      )}
      <p class="muted account-totals">
        {account.totals}. <a href={link("account")}>Every line</a>
      </p>
      {account.kinds.length > 0 && <Kinds title={account.kinds_title} kinds={account.kinds} />}
    </section>
  );
}

function bar(parts: readonly AccountPart[]) {
  return parts.map((part) => ({
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
            <span class="account-what">bound by {kind.bound_by}: <TraceText text={kind.spent} /></span>
          </li>
        ))}
      </ul>
    </>
  );
}

function Rows(props: { advice: Advice; rows: readonly AccountRow[]; most: number }) {
  const { advice, rows, most } = props;
  return (
    <ol class="account-rows">
      {rows.map((row, at) => (
        <li key={at} data-verdict={row.verdict}>
          <span class="number">{row.time}</span>
          <span class="number muted">{row.percent}</span>
          <span class="account-bar" aria-hidden="true">
            <i style={{ width: `${(100 * row.share) / most}%`, background: `var(--${CLASS_COLOURS[row.class] ?? "other"})` }} />
          </span>
          <span class="account-what"><TraceText text={row.text} /></span>
          <span class="account-verdict"><Verdict advice={advice} row={row} /></span>
          <span class="account-reason muted"><TraceText text={row.reason} /></span>
        </li>
      ))}
    </ol>
  );
}

/** The verdict; that of a finding opens the finding. */
function Verdict(props: { advice: Advice; row: AccountRow }) {
  const { advice, row } = props;
  const at = advice.findings.findIndex((finding) => finding.id === row.finding);
  if (row.finding === null || at === -1) return <>{row.verdict_text}</>;
  const address = findingAddresses(advice.findings)[at];
  return <button type="button" class="quiet" onClick={() => change({ open: address })}>{row.verdict_text}</button>;
}
