// The rows of the account; a row opens to why it has its verdict.

import type { AccountRow, AccountTexts } from "../../../data/account.ts";
import type { Advice } from "../../../data/advice.ts";
import { Swatch } from "../../../parts/charts/stack.tsx";
import { NumberLink } from "../../../parts/numbers/number-link.tsx";
import { plain } from "../../../parts/text/plain.ts";
import { TraceText } from "../../../parts/text/trace-text.tsx";
import { change, link } from "../../../route.ts";
import { findingAddresses } from "../step/step.ts";
import { CLASS_COLOURS } from "./colours.ts";

/** `why` is the number of the open row, `rows` says whether small rows are shown, too. */
export function AccountTable(props: { advice: Advice; account: AccountTexts; params: Readonly<Record<string, string>> }) {
  const { advice, account, params } = props;
  const hasAll = params["rows"] === "all";
  const rows = hasAll ? account.rows : account.rows.slice(0, account.shown);
  const small = account.rows.length - account.shown;
  const open = params["why"];
  return (
    <>
      <table class="account-table">
        <thead>
          <tr>
            <th scope="col">What</th>
            <th scope="col">Where</th>
            <th scope="col" class="number">Time</th>
            <th scope="col" class="number">Share</th>
            <th scope="col" class="number account-most" title="The most of the row's time that a change could save">At most</th>
            <th scope="col">Verdict</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row, at) => (
            <Row key={at} advice={advice} row={row} isOpen={open === String(at + 1)} number={String(at + 1)} />
          ))}
        </tbody>
      </table>
      <p class="muted account-foot">
        {small > 0 && (
          <button
            type="button" class="quiet fold" aria-expanded={hasAll}
            onClick={() => change({ rows: hasAll ? undefined : "all" })}
          >
            {small} smaller rows
          </button>
        )}
        <span>{account.totals}. <a href={link("account")}>Every line</a></span>
      </p>
    </>
  );
}

function Row(props: { advice: Advice; row: AccountRow; isOpen: boolean; number: string }) {
  const { advice, row, isOpen, number } = props;
  return (
    <>
      <tr data-verdict={row.verdict}>
        <th scope="row" class="account-what">
          <button
            type="button" class="fold" aria-expanded={isOpen} title={plain(row.text)}
            onClick={() => change({ why: isOpen ? undefined : number })}
          >
            <Swatch colour={CLASS_COLOURS[row.class] ?? "other"} />
            <TraceText text={row.what} />
          </button>
        </th>
        <td class="account-where"><Where row={row} /></td>
        <td class="number account-time"><NumberLink to={row.slices}>{row.time}</NumberLink></td>
        <td class="number account-share">{row.percent}</td>
        <td class="number account-most">{row.at_most ?? "-"}</td>
        <td class="account-verdict"><Verdict advice={advice} row={row} /></td>
      </tr>
      {isOpen && (
        <tr class="account-why">
          <td colSpan={6}><TraceText text={row.text} />: <span class="muted"><TraceText text={row.reason} /></span></td>
        </tr>
      )}
    </>
  );
}

/** The line in the panel of lines and the name of what ran; a row without a line says so. */
function Where(props: { row: AccountRow }) {
  const { line, name, file, line_number: number } = props.row;
  const at: Record<string, string> = number === null ? {} : { line: String(number) };
  return (
    <>
      {line === null || file === null
        ? <span class="muted">no line{name !== null && ", "}</span>
        : <><a class="mono" href={link("lines", { file, ...at })} title={plain(file)}>{plain(line)}</a>{" "}</>}
      {name !== null && <span class="muted"><TraceText text={name} /></span>}
    </>
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
