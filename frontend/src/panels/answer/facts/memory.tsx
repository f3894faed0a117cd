// The peak of each device's memory, and how much of the device that is.

import type { Data } from "../../../data/api.ts";
import { useQuery } from "../../../parts/data/asking.tsx";
import { loadTable, number, textAt } from "../../../parts/data/full-table.ts";
import { plain } from "../../../parts/text/plain.ts";
import { TraceText } from "../../../parts/text/trace-text.tsx";
import { link } from "../../../route.ts";
import { text } from "../../../units.ts";
import { Meter } from "../../../parts/figures/devices.tsx";
import type { PanelProps } from "../../panel.ts";
import { Fact } from "./fact.tsx";
import { peaksOf } from "./peak.ts";

async function load(data: Data, trace: string) {
  const [table, overview] = await Promise.all([
    loadTable(data, trace, "memory_peak", { by: "category" }),
    loadTable(data, trace, "overview"),
  ]);
  const capacities = new Map<number, number>();
  for (let row = 0; row < overview.rows; row++) {
    const [device, bytes] = [number(overview, "device", row), number(overview, "value", row)];
    const isSize = textAt(overview, "section", row) === "device" && textAt(overview, "metric", row) === "memory";
    if (isSize && device !== null && bytes !== null) capacities.set(device, bytes);
  }
  return { peaks: peaksOf(table, capacities), lacks: table.lacks };
}

export function MemoryFact(props: PanelProps) {
  const { data, trace } = props;
  const asked = useQuery(() => load(data, trace.id), trace.id);
  return (
    <Fact name="memory" title="Peak memory" all={link("memory")} asked={asked}>
      {({ peaks, lacks }) => {
        if (lacks.length > 0) return <p class="muted">Not in this recording: <TraceText text={lacks.join("; ")} />.</p>;
        if (peaks.length === 0) return <p class="muted">No memory was allocated.</p>;
        return (
          <table class="figures">
            <tbody>
              {peaks.map(({ title, key, bytes, capacity }) => (
                <tr key={key}>
                  <th scope="row"><a href={link("memory", { of: key })}>{plain(title)}</a></th>
                  <td class="number">
                    {capacity !== null && <><Meter share={bytes / capacity} /><span class="muted">{text(bytes / capacity, "ratio")}</span></>}
                    <span class="metered">{text(bytes, "bytes")}</span>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        );
      }}
    </Fact>
  );
}
