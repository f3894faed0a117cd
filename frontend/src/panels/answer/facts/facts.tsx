// The facts beside the findings: why the device idles, what is costliest, memory and devices.

import "./facts.css";
import { useQuery } from "../../../parts/data/asking.tsx";
import { labelsOf } from "../../../parts/data/labels.ts";
import { loadTable } from "../../../parts/data/full-table.ts";
import { plain } from "../../../parts/text/plain.ts";
import { TraceText } from "../../../parts/text/trace-text.tsx";
import { link } from "../../../route.ts";
import { text } from "../../../units.ts";
import { Devices, Host } from "../../../parts/figures/devices.tsx";
import { figures, inSection } from "../../../parts/figures/figures.ts";
import type { PanelProps } from "../../panel.ts";
import { Fact } from "./fact.tsx";
import { Entries, ListFact } from "./list.tsx";
import { idleCauses, kernels, lines, operators } from "./lists.ts";
import { MemoryFact } from "./memory.tsx";

export function Facts(props: PanelProps & { hasDevice: boolean }) {
  const { hasDevice } = props;
  return (
    <aside class="facts" aria-label="Facts">
      <IdleFact {...props} />
      {hasDevice && <ListFact {...props} of={kernels()} />}
      <ListFact {...props} of={operators(hasDevice)} />
      <MemoryFact {...props} />
      <DeviceFact {...props} />
      <ListFact {...props} of={lines(hasDevice)} />
    </aside>
  );
}

function IdleFact(props: PanelProps) {
  const { data, trace, views } = props;
  const asked = useQuery(() => idleCauses(data, trace.id, views.get("idle")), trace.id);
  const whole = asked.state === "here" && asked.value.lacks.length === 0 ? asked.value.whole : null;
  const what = whole === null ? undefined : `${text(whole, "ratio")} of all counted steps`;
  return (
    <Fact name="idle" title="Why the device idles" what={what} all={link("idle", { by: "cause", counted: "true" })} asked={asked}>
      {({ entries, lacks }) => {
        if (lacks.length > 0) return <p class="muted">Not in this recording: <TraceText text={lacks.join("; ")} />.</p>;
        if (entries.length === 0) return <p class="muted">No device was idle in the counted steps.</p>;
        return <Entries entries={entries} />;
      }}
    </Fact>
  );
}

/** The metrics that tell how well devices are used; a single device's name is in the heading. */
const SHOWN: ReadonlySet<string> = new Set(["busy", "SM efficiency", "occupancy", "tensor cores", "threads"]);

function DeviceFact(props: PanelProps & { hasDevice: boolean }) {
  const { data, trace, views, hasDevice } = props;
  const load = async () => figures(await loadTable(data, trace.id, "overview"), labelsOf(views.get("overview"), "metric"));
  const asked = useQuery(load, trace.id);
  const names = asked.state !== "here" ? [] : inSection(asked.value, "device").filter(({ metric }) => metric === "name");
  const name = names.length === 1 ? names[0]?.text : null;
  return (
    <Fact name="device" title={hasDevice ? "Device" : "Host"} what={name == null ? undefined : plain(name)} all={link("overview")} asked={asked}>
      {(all) => {
        const found = all.filter(({ metric, text: said }) => said !== null && (SHOWN.has(metric) || (metric === "name" && name === null)));
        return hasDevice ? <Devices figures={found} /> : <Host figures={found} />;
      }}
    </Fact>
  );
}
