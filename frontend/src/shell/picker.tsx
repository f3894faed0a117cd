// The menu to choose a trace by run, worker and span.

import type { TraceInfo } from "../data/api.ts";
import { areUnrelated } from "../parts/data/unrelated-traces.ts";
import { plain } from "../parts/text/plain.ts";
import { change, link } from "../route.ts";
import { countedText } from "../units.ts";
import { levelChoices, pickTrace, areDistinct } from "./picking.ts";
import type { Level } from "./picking.ts";
import { TRACES } from "./trace-table.tsx";

const LEVELS: readonly [Level, string][] = [
  ["run", "Run"],
  ["worker", "Worker"],
  ["span", "Span"],
];

interface Props {
  traces: readonly TraceInfo[];
  shown: TraceInfo;
  /** The list is about to be read: traces may have come since. */
  onOpen: () => void;
}

export function Picker(props: Props) {
  const { traces, shown } = props;
  if (traces.length === 1) return <TraceName trace={shown} />;
  return (
    <div class="picker" onPointerDown={props.onOpen} onFocusIn={props.onOpen}>
      {areUnrelated(traces) ? <TraceName trace={shown} /> : areDistinct(traces) ? <ByLevel {...props} /> : <ByName {...props} />}
      <a class="picker-all" href={link(TRACES)} title="The list of all traces">{countedText(traces.length, "trace")}</a>
    </div>
  );
}

function TraceName(props: { trace: TraceInfo }) {
  const { name, run } = props.trace;
  const whole = plain(run ? `${run}/${name}` : name);
  return <span class="trace-name" title={whole}>{plain(name)}</span>;
}

function ByLevel({ traces, shown }: Props) {
  const open = levelChoices(traces, shown);
  return (
    <>
      {LEVELS.filter(([level]) => open[level].length > 1 || level === "worker").map(
        ([level, title]) => (
          <label key={level} title={plain(shown[level])}>
            <span class="muted">{title}</span>
            <select
              aria-label={title}
              value={shown[level]}
              onChange={(event) => show(pickTrace(traces, shown, level, event.currentTarget.value))}
            >
              {open[level].map((value) => (
                <option key={value} value={value}>{plain(value) || "(none)"}</option>
              ))}
            </select>
          </label>
        ),
      )}
    </>
  );
}

function ByName({ traces, shown }: Props) {
  const runs = [...new Set(traces.map((known) => known.run))];
  const named = (run: string) => traces.filter((known) => known.run === run);
  const pick = (id: string) => show(traces.find((known) => known.id === id));
  return (
    <label title={plain(shown.name)}>
      <span class="muted">Trace</span>
      <select
        aria-label="Trace"
        value={shown.id}
        onChange={(event) => pick(event.currentTarget.value)}
      >
        {runs.map((run) => (
          <optgroup key={run} label={plain(run) || "traces"}>
            {named(run).map((known) => (
              <option key={known.id} value={known.id}>{plain(known.name)}</option>
            ))}
          </optgroup>
        ))}
      </select>
    </label>
  );
}

/** What is meant in one trace only and does not go with the panel to another. */
const OF_ONE_TRACE = { slice: undefined, of: undefined, row: undefined, from: undefined, to: undefined };

function show(trace: TraceInfo | undefined): void {
  if (trace !== undefined) change({ ...OF_ONE_TRACE, trace: trace.id }, { replace: false });
}
