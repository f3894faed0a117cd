// The controls of the panel of memory.

import type { Span } from "../../draw/span.ts";
import { wordOf } from "../../draw/span.ts";
import { Choice } from "../../parts/controls/choice.tsx";
import { plain } from "../../parts/text/plain.ts";
import { change } from "../../route.ts";
import { instantText, timeText } from "../../units.ts";
import type { PanelProps } from "../panel.ts";
import type { Grouping } from "./bands.ts";
import type { Curve } from "./curves.ts";
import type { Below } from "./stretch.ts";
import { brushed, conditions } from "./stretch.ts";

const STACKS = [
  ["category", "category", "what the memory is for"],
  ["module", "module", "the nn.Module that allocated it"],
  ["operator", "operator", "the operator that allocated it"],
  ["line", "line", "the source line that allocated it"],
  ["no", "off", "one area"],
] as const;

/** Of the grid below; another table has other columns. */
const AFRESH = { sort: undefined, find: undefined, where: undefined, cols: undefined, widths: undefined, row: undefined, focus: undefined };

export function Tools(props: PanelProps & { brush: Span | null; at: number | null; below: Below; zoomed: boolean; curve: Curve; curves: Curve[]; stack: Grouping | null }) {
  const { params, brush, at, below, zoomed, curve, curves, stack } = props;
  const others = props.traces.filter((one) => one.id !== props.trace.id && !one.is_ledger);
  const show = (next: Below) =>
    change({ ...AFRESH, show: next === "holders" ? undefined : next, ...conditions({}, brush, next, params["ends"]) });
  return (
    <div class="memory-tools">
      <h1>Memory</h1>
      <Choice
        label="Stack"
        value={params["stack"] === "no" ? "no" : stack ?? "category"}
        choices={STACKS}
        onChange={(next) => change({ stack: next })}
      />
      <Choice
        label="Below"
        value={below}
        choices={[
          ["holders", "who holds it", "at the peak, or at the chosen instant"],
          ["flame", "flame graph", "what allocated it, as a tree"],
          ["lifetimes", "freed where", "what was allocated where, released where, after how long; leaks first"],
          ["blocks", "blocks", "each block with its allocation and its release"],
          ["operators", "operators", "what operators allocated and kept"],
        ]}
        onChange={show}
      />
      {curves.length > 1 && (
        <Choice
          label="of"
          value={curve.key}
          choices={curves.map((one) => [one.key, plain(one.title)] as const)}
          onChange={(of) => change({ of })}
        />
      )}
      {below === "blocks" && brush !== null && (
        <Choice
          label="in the stretch"
          value={params["ends"] === "released" ? "released" : "allocated"}
          choices={[["allocated", "allocated"], ["released", "released"]]}
          onChange={(ends) => change({ ends: ends === "released" ? ends : undefined, ...conditions(params, brush, below, ends) })}
        />
      )}
      {others.length > 0 && (
        <label class="memory-other">
          <span class="muted">beside</span>{" "}
          <select value={params["beside"] ?? ""} onChange={(event) => change({ beside: event.currentTarget.value || undefined })}>
            <option value="">nothing</option>
            {others.map((one) => <option key={one.id} value={one.id}>{plain(one.name)}</option>)}
          </select>
        </label>
      )}
      <span class="memory-moves">
        {brush !== null && (
          <>
            <button type="button" onClick={() => change({ zoom: wordOf(brush) })}>zoom to the stretch</button>
            <button type="button" title="Esc" onClick={() => change(brushed(params, null, below))}>
              {timeText(brush.to - brush.from)} chosen ×
            </button>
          </>
        )}
        {at !== null && params["versus"] !== String(Math.round(at)) && (
          <button type="button" title="Then choose another instant" onClick={() => change({ versus: String(Math.round(at)), at: undefined, show: below === "flame" ? "flame" : undefined })}>
            pin to compare
          </button>
        )}
        {at !== null && <button type="button" onClick={() => change({ at: undefined })}>at {instantText(at)} ×</button>}
        {zoomed && <button type="button" onClick={() => change({ zoom: undefined })}>show all</button>}
      </span>
    </div>
  );
}
