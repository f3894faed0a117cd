// What of the flame graph can be chosen.

import { Choice } from "../../parts/choice.tsx";
import { change } from "../../route.ts";
import type { PanelProps } from "../panel.ts";

/** Another table numbers its nodes anew, so the focus goes. */
const AFRESH = { focus: undefined, at: undefined, detail: undefined };

export function Tools(props: { params: PanelProps["params"] }) {
  const { params } = props;
  const thread = params["thread"];
  return (
    <div class="flame-tools">
      <h1>Flame</h1>
      <Choice
        label="Time"
        value={params["metric"] ?? "auto"}
        choices={[
          ["auto", "auto", "of the device, where there is any"],
          ["host", "host", "where the host spent its time"],
          ["device", "device", "which host code the device worked for"],
        ]}
        onChange={(metric) => change({ ...AFRESH, metric: metric === "auto" ? undefined : metric })}
      />
      <Choice
        label="By"
        value={params["by"] ?? "stack"}
        choices={[
          ["stack", "calls", "what ran within what"],
          ["module", "modules", "without plain frames; backward within its module"],
        ]}
        onChange={(by) => change({ ...AFRESH, by: by === "stack" ? undefined : by })}
      />
      <Choice
        label="Order"
        value={params["order"] ?? "weight"}
        choices={[["weight", "time"], ["name", "name"]]}
        onChange={(order) => change({ order: order === "weight" ? undefined : order })}
      />
      <label title="Frames that hold nothing but the next are one box, named by the innermost or by the module; +3 says that it stands for three more">
        <input
          type="checkbox"
          checked={params["fold"] !== "no"}
          onChange={(event) => change({ fold: event.currentTarget.checked ? undefined : "no" })}
        /> join frames
      </label>
      <label title="Without the first step, partial steps and outliers">
        <input
          type="checkbox"
          checked={params["counted"] === "true"}
          onChange={(event) => change({ ...AFRESH, counted: event.currentTarget.checked ? "true" : undefined })}
        /> counted steps only
      </label>
      {thread && (
        <button type="button" title="Show all threads" onClick={() => change({ ...AFRESH, thread: undefined })}>
          thread {thread} ×
        </button>
      )}
    </div>
  );
}
