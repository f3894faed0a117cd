// The controls of the flame graph.

import { Choice } from "../../parts/controls/choice.tsx";
import { change } from "../../route.ts";
import type { PanelProps } from "../panel.ts";
import { AFRESH, ARRANGEMENTS, arrangementOf, metricOf } from "./arrangement.ts";

export function Tools(props: { params: PanelProps["params"]; isReport: boolean }) {
  const { params } = props;
  const tree = arrangementOf(params);
  const isInTime = tree === "time";
  const thread = isInTime ? undefined : params["thread"];
  return (
    <div class="flame-tools">
      <h1>Flame</h1>
      <Choice
        label="Tree"
        value={tree}
        choices={ARRANGEMENTS}
        onChange={(next) => change({ ...AFRESH, tree: next === "top_down" ? undefined : next }, { replace: false })}
      />
      <Choice
        label="Time"
        value={metricOf(params, props.isReport)}
        choices={[
          ...(isInTime && !props.isReport ? [] : [["auto", "auto", "of the device, where there is any"] as const]),
          ["host", "host", "host time"],
          ["device", "device", "which host code the device worked for"],
        ]}
        onChange={(metric) => change({ ...AFRESH, metric: metric === "auto" ? undefined : metric })}
      />
      <Choice
        label="By"
        value={params["by"] ?? "stack"}
        choices={[
          ["stack", "calls", "call tree"],
          ["module", "modules", "without plain frames; backward within its module"],
        ]}
        onChange={(by) => change({ ...AFRESH, by: by === "stack" ? undefined : by })}
      />
      {!isInTime && (
        <Choice
          label="Order"
          value={params["order"] ?? "weight"}
          choices={[["weight", "time"], ["name", "name"]]}
          onChange={(order) => change({ order: order === "weight" ? undefined : order })}
        />
      )}
      <Check
        text="join frames"
        title="Frames with a single child are merged into one box: +3 means three more frames"
        checked={params["fold"] !== "no"}
        onChange={(fold) => change({ fold: fold ? undefined : "no" })}
      />
      {!isInTime && (
        <Check
          text="counted steps only"
          title="Without the first step, partial steps and outliers"
          checked={params["counted"] === "true"}
          onChange={(counted) => change({ ...AFRESH, counted: counted ? "true" : undefined })}
        />
      )}
      <Check
        text="names"
        title="The list of all names with their self and total time"
        checked={params["names"] !== "no"}
        onChange={(names) => change({ names: names ? undefined : "no" })}
      />
      {thread && (
        <button type="button" title="Show all threads" onClick={() => change({ ...AFRESH, thread: undefined })}>
          thread {thread} ×
        </button>
      )}
    </div>
  );
}

function Check(props: { text: string; title: string; checked: boolean; onChange: (checked: boolean) => void }) {
  return (
    <label title={props.title}>
      <input
        type="checkbox"
        checked={props.checked}
        onChange={(event) => props.onChange(event.currentTarget.checked)}
      /> {props.text}
    </label>
  );
}
