// The choice of what memory is compared with.

import { plain } from "../../parts/text/plain.ts";
import { change } from "../../route.ts";
import { instantText } from "../../units.ts";
import type { PanelProps } from "../panel.ts";
import type { Versus } from "./differences.ts";
import { versusOf } from "./differences.ts";
import type { When } from "./stretch.ts";

/** A folder may hold many traces: the list has those that are served. */
export function Against(props: PanelProps & { when: When }) {
  const { trace, traces, params, when } = props;
  const word = params["versus"];
  const versus = versusOf(word);
  const others = traces.filter((one) => one.id !== trace.id && !one.is_ledger);
  const isPeak = Object.keys(when.options).length === 0;
  if (versus === null && isPeak && others.length === 0) return null;
  const isInstant = versus !== null && versus.kind !== "peak" && versus.time !== null;
  return (
    <label class="holders-against">
      <span class="muted">compared with</span>{" "}
      <select value={versus === null ? "" : word} onChange={(event) => change({ versus: event.currentTarget.value || undefined, focus: undefined })}>
        <option value="">nothing</option>
        {(!isPeak || versus?.kind === "peak") && <option value="peak">the peak</option>}
        {isInstant && <option value={word}>{versusText(versus, traces)}</option>}
        {others.map((one) => <option key={one.id} value={`trace:${one.id}`}>the peak of {plain(one.name)}</option>)}
      </select>
    </label>
  );
}

/** What is compared with, in words that follow "at". */
export function versusText(versus: Versus, traces: PanelProps["traces"]): string {
  if (versus.kind === "peak") return "the peak";
  if (versus.kind === "instant") return instantText(versus.time);
  const name = plain(traces.find((one) => one.id === versus.id)?.name ?? versus.id);
  return versus.time === null ? `the peak of ${name}` : `${instantText(versus.time)} of ${name}`;
}
