// The tables of the panel: the parts of the run, the kinds of steps, what made steps slow.

import type { ComponentChildren } from "preact";
import { Swatch } from "../../parts/charts/stack.tsx";
import type { FullTable } from "../../parts/data/full-table.ts";
import { cell, number, textAt } from "../../parts/data/full-table.ts";
import { timelineLinkParameters } from "../../parts/data/timeline-link.ts";
import { labelOfValue } from "../../parts/data/labels.ts";
import type { Labels } from "../../parts/data/labels.ts";
import { plain } from "../../parts/text/plain.ts";
import { link } from "../../route.ts";
import { text, UNKNOWN } from "../../units.ts";
import type { Cause, Part, Place } from "./parts.ts";
import { namedShares, onlyShare, placeAt } from "./parts.ts";
import { placeText } from "../../parts/text/place.ts";

/** Slow steps, and causes of them, that are listed. */
const LISTED = 12;

/** A line of the program, which leads to its source. */
export function Line(props: { place: Place | null }) {
  const { place } = props;
  if (place === null) return <span class="muted">{UNKNOWN}</span>;
  const { file, line } = place;
  const name = file.slice(Math.max(file.lastIndexOf("/"), file.lastIndexOf("\\")) + 1);
  return (
    <a class="mono run-line" title={plain(placeText(file, line))} href={link("lines", { file, line: String(line) })}>
      <span>{plain(name)}</span>{placeText(file, line).slice(file.length)}
    </a>
  );
}

function Table(props: { head: readonly (readonly [title: string, isNumber: boolean, doc?: string])[]; children: ComponentChildren }) {
  return (
    <div class="run-table">
      <table class="figures">
        <thead>
          <tr>
            {props.head.map(([title, isNumber, doc]) => (
              <th key={title} scope="col" class={isNumber ? "number" : undefined} title={doc}>{title}</th>
            ))}
          </tr>
        </thead>
        <tbody>{props.children}</tbody>
      </table>
    </div>
  );
}

export function PartsTable(props: { parts: readonly Part[]; wall: number }) {
  const { parts, wall } = props;
  return (
    <Table head={[["part", false], ["time", true], ["share", true, "Of the wall time"], ["count", true], ["line", false]]}>
      {parts.map((part) => <PartRows key={part.part} part={part} wall={wall} />)}
    </Table>
  );
}

function PartRows(props: { part: Part; wall: number }) {
  const { part, wall } = props;
  const shares = namedShares(part, wall);
  const only = onlyShare(part);
  return (
    <>
      <tr>
        <th scope="row">
          <Swatch colour={part.colour} />{part.label}
          {only?.what != null && <span class="muted"> {plain(only.what)}</span>}
        </th>
        <td class="number">{text(part.time, "ns")}</td>
        <td class="number">{part.share === null ? UNKNOWN : text(part.share, "ratio")}</td>
        <td class="number">{part.count === 0 ? "" : text(part.count, "count")}</td>
        <td>{shares.length === 0 && <Line place={only?.place ?? null} />}</td>
      </tr>
      {shares.map((share, at) => (
        <tr key={at} class="run-share">
          <th scope="row">{share.what === null ? "" : plain(share.what)}</th>
          <td class="number muted">{text(share.time, "ns")}</td>
          <td class="number muted">{wall > 0 && text(share.time / wall, "ratio")}</td>
          <td />
          <td><Line place={share.place} /></td>
        </tr>
      ))}
    </>
  );
}

export function KindsTable(props: { kinds: FullTable; colours: ReadonlyMap<string, string> }) {
  const { kinds, colours } = props;
  const time = (row: number, name: string) => text(number(kinds, name, row), "ns");
  return (
    <Table
      head={[
        ["kind of step", false], ["count", true], ["median", true], ["p95", true, "The 95th percentile"],
        ["data wait", true, "How long a step waits for a batch, on average"], ["total", true],
        ["slow", true, "At least twice the median, and 20 ms longer"],
        ["covered", true, "What the recorded steps of this kind stand for"], ["loop", false],
      ]}
    >
      {[...Array(kinds.rows).keys()].map((row) => (
        <tr key={row}>
          <th scope="row" class="run-kind">
            <Swatch colour={colours.get(textAt(kinds, "kind", row) ?? "") ?? "other"} />
            {plain(textAt(kinds, "kind", row) ?? UNKNOWN)}
          </th>
          <td class="number">{text(number(kinds, "count", row), "count")}</td>
          <td class="number">{time(row, "median")}</td>
          <td class="number">{time(row, "p95")}</td>
          <td class="number">{time(row, "data_wait")}</td>
          <td class="number">{time(row, "total")}</td>
          <td class="number">{text(number(kinds, "slow", row), "count")}</td>
          <td class="number">{number(kinds, "covered", row) === 0 ? "nothing recorded" : time(row, "covered")}</td>
          <td><Line place={placeAt(kinds, row)} /></td>
        </tr>
      ))}
    </Table>
  );
}

export function CausesTable(props: { causes: readonly Cause[]; labels: Labels }) {
  return (
    <Table head={[["cause", false, "What most of the excess is"], ["steps", true], ["cost", true, "How much longer than the median of their kind"], ["line", false]]}>
      {props.causes.slice(0, LISTED).map((one, at) => (
        <tr key={at}>
          <th scope="row">{labelOfValue(props.labels, one.cause).text}</th>
          <td class="number">{text(one.count, "count")}</td>
          <td class="number">{text(one.excess, "ns")}</td>
          <td><Line place={one.place} /></td>
        </tr>
      ))}
    </Table>
  );
}

export function SlowestTable(props: { slow: FullTable; labels: Labels }) {
  const { slow, labels } = props;
  return (
    <Table head={[["step", false], ["at", true, "Since the process started"], ["took", true], ["longer by", true, "Than the median of its kind"], ["cause", false], ["line", false]]}>
      {[...Array(Math.min(slow.rows, LISTED)).keys()].map((row) => (
        <tr key={row}>
          <th scope="row"><StepName slow={slow} row={row} /></th>
          <td class="number">{text(number(slow, "start", row), "ns")}</td>
          <td class="number">{text(number(slow, "time", row), "ns")}</td>
          <td class="number">{text(number(slow, "excess", row), "ns")}</td>
          <td>{labelOfValue(labels, textAt(slow, "cause", row) ?? "unknown").text}</td>
          <td><Line place={placeAt(slow, row)} /></td>
        </tr>
      ))}
    </Table>
  );
}

/** The step's number; one that the trace holds leads there. */
function StepName(props: { slow: FullTable; row: number }) {
  const { slow, row } = props;
  const name = text(number(slow, "step", row), "id");
  const start = cell(slow, "trace_start", row);
  if (typeof start !== "number") return <>{name}</>;
  const moment = timelineLinkParameters(start, number(slow, "time", row) ?? 0);
  return <a href={link("timeline", moment)} title="Show it in the timeline">{name}</a>;
}
