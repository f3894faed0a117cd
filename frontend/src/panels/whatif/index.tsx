// The step time after changes of the reader's choice, by one simulation of all of them.

import "./style.css";
import { useState } from "preact/hooks";
import type { AskedChange, ChangeKind, WhatIf } from "../../data/api.ts";
import { Empty, QueryResult, Waiting, useQuery } from "../../parts/data/asking.tsx";
import type { QueryState } from "../../parts/data/asking.tsx";
import { go } from "../../route.ts";
import { WhatIfPicture } from "../answer/step/whatif.tsx";
import type { Panel, PanelProps } from "../panel.ts";
import { CLASSES, changeText, parseChanges, withChange, withoutChange } from "./changes.ts";

export const whatif: Panel = {
  name: "whatif",
  title: "What if",
  group: "answer",
  component: WhatIfPanel,
  needsServer: true,
};

const NOT_IN_REPORT =
  "A report holds tables and no program to simulate. `selftime serve` shows this page with it, and " +
  "`selftime what-if` answers in a terminal.";

function WhatIfPanel(props: PanelProps) {
  if (props.data.inline) return <Empty title="Not in this report" text={NOT_IN_REPORT} />;
  return <Asking {...props} />;
}

/** The trace's health tells whether it can be read at all. */
function Asking(props: PanelProps) {
  const { data, trace } = props;
  const asked = useQuery(() => data.health(trace.id), trace.id);
  return <QueryResult asked={asked}>{() => <Changes {...props} />}</QueryResult>;
}

function Changes(props: PanelProps) {
  const { data, trace, params } = props;
  const changes = parseChanges(params["changes"]);
  const show = (asked: AskedChange[]) =>
    go("whatif", asked.length === 0 ? {} : { changes: JSON.stringify(asked) });
  return (
    <div class="asked">
      <h1>What if</h1>
      <p class="muted">
        What a step would take if something were faster, gone, or hidden: all changes together, by a
        simulation of the recorded program.
      </p>
      <ChangeForm add={(change) => show(withChange(changes, change))} />
      {changes.length > 0 && (
        <ul class="asked-changes" aria-label="Changes">
          {changes.map((change) => (
            <li key={changeText(change)}>
              <span>{changeText(change)}</span>
              <button type="button" class="quiet" aria-label={`Without: ${changeText(change)}`} onClick={() => show(withoutChange(changes, change))}>×</button>
            </li>
          ))}
        </ul>
      )}
      {changes.length > 0 && <Predicted data={data} trace={trace.id} changes={changes} />}
    </div>
  );
}

function ChangeForm(props: { add: (change: AskedChange) => void }) {
  const [kind, setKind] = useState<ChangeKind>("scale");
  const [pattern, setPattern] = useState("");
  const [percent, setPercent] = useState("50");
  const isHidden = kind === "hide";
  const kept = isHidden ? 1 : kind === "remove" ? 0 : Number(percent) / 100;
  const asked = isHidden ? "communication" : pattern.trim();
  const isWhole = asked !== "" && kept >= 0 && kept <= 1 && percent !== "";
  return (
    <form
      class="asked-form"
      onSubmit={(event) => {
        event.preventDefault();
        if (isWhole) props.add({ change: kind, pattern: asked, kept_share: kept });
      }}
    >
      <select aria-label="Change" value={kind} onChange={(event) => setKind(event.currentTarget.value as ChangeKind)}>
        <option value="scale">Scale</option>
        <option value="remove">Remove</option>
        <option value="hide">Hide communication</option>
      </select>
      {!isHidden && (
        <input
          type="text" list="asked-classes" spellcheck={false} aria-label="Pattern" value={pattern}
          placeholder="aten::conv*, *gemm*, train.py:31, syncs …" onInput={(event) => setPattern(event.currentTarget.value)}
        />
      )}
      {kind === "scale" && (
        <label>
          to <input type="number" min="0" max="100" step="any" value={percent} aria-label="Share that is left, in percent" onInput={(event) => setPercent(event.currentTarget.value)} /> %
        </label>
      )}
      <button type="submit" disabled={!isWhole}>Add</button>
      <datalist id="asked-classes">
        {CLASSES.map(([name, text]) => <option key={name} value={name}>{text}</option>)}
      </datalist>
    </form>
  );
}

function Predicted(props: { data: PanelProps["data"]; trace: string; changes: AskedChange[] }) {
  const { data, trace, changes } = props;
  const asked = useQuery(() => data.whatIf(trace, changes), `${trace} ${JSON.stringify(changes)}`);
  return <Answer asked={asked} />;
}

function Answer(props: { asked: QueryState<WhatIf> }) {
  const { asked } = props;
  if (asked.state === "waiting") return <Waiting what="the recorded program" />;
  if (asked.state === "failed") return <p class="asked-error" role="alert">{asked.error}</p>;
  const { figures, step, changes } = asked.value;
  return (
    <div class={asked.stale ? "answered stale" : "answered"} aria-busy={asked.stale}>
      <WhatIfPicture step={step} mix={[]} change="after" />
      <dl class="asked-figures">
        {figures.map(({ label, text }) => <div key={label}><dt>{label}</dt><dd>{text}</dd></div>)}
      </dl>
      {changes.map((change) => <Matched key={change.text} change={change} />)}
      <p class="muted">Times are those of a recorded step. A name's time includes what it calls, so names overlap.</p>
    </div>
  );
}

function Matched(props: { change: WhatIf["changes"][number] }) {
  const { text, names, name_count: count } = props.change;
  const left = count - names.length;
  return (
    <section class="asked-change">
      <h2>{text}</h2>
      <table>
        <thead>
          <tr><th scope="col">Name</th><th scope="col">Kind</th><th scope="col">A step</th><th scope="col">Time</th></tr>
        </thead>
        <tbody>
          {names.map((one) => (
            <tr key={`${one.kind} ${one.name}`}>
              <td><code>{one.name}</code></td><td>{one.kind}</td><td>{one.count}</td><td>{one.time}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {left > 0 && <p class="muted">and {left} more</p>}
    </section>
  );
}
