// Chooses a second trace below the first, and which of its instants lies at which of the first's.

import { useState } from "preact/hooks";
import type { TraceInfo } from "../../../data/api.ts";
import { Choice } from "../../../parts/controls/choice.tsx";
import { usePopover } from "../../../parts/controls/popover.ts";
import { plain } from "../../../parts/text/plain.ts";
import { change } from "../../../route.ts";
import { countText, parseQuantity, timeText } from "../../../units.ts";
import type { PanelProps } from "../../panel.ts";
import { loadSteps } from "../input/steps.ts";
import { alignmentText, labelOf, parseAlignment } from "../tracks/beside.ts";
import type { Alignment } from "../tracks/beside.ts";

/** How a second trace comes into a report. */
const OF_BOTH = <><code>selftime compare BEFORE AFTER -o FILE.html</code> writes one of two traces.</>;
/** Of more traces the list is searched. */
const MOST_LISTED = 12;

export function BesideChooser(props: PanelProps) {
  const { params } = props;
  const { open, show, holder } = usePopover<HTMLSpanElement>();
  const isShown = params["beside"] !== undefined;
  return (
    <span class="timeline-ranks" ref={holder}>
      <button type="button" aria-expanded={open} aria-pressed={isShown} title="Show a second trace below this one, such as the one before a change" onClick={() => show(!open)}>
        Second trace
      </button>
      {open && <Box {...props} />}
    </span>
  );
}

/** What concerns slices and tracks of the second trace has no meaning with another one. */
const OF_SECOND = { fold: undefined, slice: undefined, area: undefined, pin: undefined, hide: undefined, order: undefined, compare: undefined };

function Box(props: PanelProps) {
  const { data, trace, traces, params } = props;
  const [find, search] = useState("");
  const chosen = params["beside"];
  const known = traces.filter((one) => !one.is_ledger && nameOf(one, trace).toLowerCase().includes(find.trim().toLowerCase()));
  const isAlone = data.inline && traces.every((one) => one.is_ledger || one.id === trace.id);
  const choose = (id: string | undefined) => change({ ...OF_SECOND, beside: id, align: undefined }, { replace: false });
  return (
    <div class="timeline-box timeline-beside-box" role="group" aria-label="A second trace below this one">
      {traces.length > MOST_LISTED && (
        <input type="search" value={find} placeholder="Search traces" aria-label="Search traces" onInput={(event) => search(event.currentTarget.value)} />
      )}
      <ul>
        {known.slice(0, MOST_LISTED).map((one) => (
          <li key={one.id}>
            <label>
              <input type="radio" name="beside" checked={one.id === chosen} onChange={() => choose(one.id)} /> <span>{plain(nameOf(one, trace))}</span>
            </label>
          </li>
        ))}
      </ul>
      {known.length > MOST_LISTED && <p class="muted">and {countText(known.length - MOST_LISTED)} more, by search</p>}
      {known.length === 0 && <p class="muted">No trace has this name.</p>}
      {isAlone && <p class="muted">This report carries no other trace. {OF_BOTH}</p>}
      {chosen !== undefined && <Align {...props} other={chosen} alignment={parseAlignment(params["align"])} />}
      {chosen !== undefined && <button type="button" onClick={() => choose(undefined)}>This trace alone</button>}
    </div>
  );
}

function nameOf(one: TraceInfo, shown: TraceInfo): string {
  if (one.id === shown.id) return "this trace once more";
  return labelOf(one);
}

const WAYS: readonly (readonly [Alignment["by"], string, string])[] = [
  ["origin", "origin", "Both traces begin at the same instant"],
  ["step", "step", "A step of each begins at the same instant"],
  ["offset", "offset", "The second trace is later by a time of your choice"],
];

function Align({ data, trace, other, alignment }: PanelProps & { other: string; alignment: Alignment }) {
  const align = (to: Alignment) => change({ align: alignmentText(to) });
  const choose = async (by: Alignment["by"]) => {
    if (by !== "step") return align(by === "offset" ? { by, ns: 0 } : { by });
    const steps = await Promise.all([trace.id, other].map((id) => loadSteps(data, id).catch(() => [])));
    const [first, second] = steps.map((those) => those[0]?.number ?? 0); // where there is none, a note says so
    align({ by, own: first ?? 0, other: second ?? 0 });
  };
  const number = (text: string, then: (value: number) => void) => {
    if (/^-?\d{1,15}$/.test(text.trim())) then(Number(text));
  };
  return (
    <>
      <Choice label="Align by" value={alignment.by} choices={WAYS} onChange={(by) => void choose(by)} />
      {alignment.by === "step" && (
        <p>
          <label>step <input type="number" value={alignment.own} onChange={(event) => number(event.currentTarget.value, (own) => align({ ...alignment, own, other: alignment.own === alignment.other ? own : alignment.other }))} /></label>{" "}
          <label>with its step <input type="number" value={alignment.other} onChange={(event) => number(event.currentTarget.value, (other) => align({ ...alignment, other }))} /></label>
        </p>
      )}
      {alignment.by === "offset" && <Offset ns={alignment.ns} onChange={(ns) => align({ by: "offset", ns })} />}
    </>
  );
}

function Offset({ ns, onChange }: { ns: number; onChange: (ns: number) => void }) {
  const [wrong, tell] = useState(false);
  const take = (text: string) => {
    const isEarlier = text.trim().startsWith("-");
    const size = parseQuantity(text.trim().replace(/^[+-]/, ""), "ns");
    tell(size === null);
    if (size !== null) onChange(isEarlier ? -size : size);
  };
  return (
    <p>
      <label>
        later by{" "}
        <input type="text" value={ns < 0 ? `-${timeText(-ns)}` : timeText(ns)} placeholder="1.5 ms" aria-invalid={wrong} onChange={(event) => take(event.currentTarget.value)} />
      </label>{" "}
      {wrong && <span class="muted">write a time such as -1.5 ms</span>}
    </p>
  );
}
