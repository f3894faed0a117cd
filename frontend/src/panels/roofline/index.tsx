// Roofline: how fast each operator computes, against what the device can do with its bytes.

import "./style.css";
import { useMemo } from "preact/hooks";
import type { Filter } from "../../data/api.ts";
import { Chart } from "../../parts/charts/chart.tsx";
import { Choice } from "../../parts/controls/choice.tsx";
import { QueryResult, useQuery } from "../../parts/data/asking.tsx";
import type { FullTable } from "../../parts/data/full-table.ts";
import { loadTable, numbers } from "../../parts/data/full-table.ts";
import { plain } from "../../parts/text/plain.ts";
import { MissingData } from "../../parts/text/missing-data.tsx";
import { change, link } from "../../route.ts";
import { timeText, text, UNKNOWN } from "../../units.ts";
import type { Panel, PanelProps } from "../panel.ts";
import { chartOf } from "./drawing.ts";
import { rooflineOf } from "./points.ts";
import type { Roofline, RooflinePoint, TimeColumns } from "./points.ts";

/** The most rows that are drawn, the costliest first. */
const MOST_ROWS = 2_000;
const OPERATORS: Filter[] = [{ column: "kind", op: "is", value: "operator" }];

function RooflinePanel(props: PanelProps) {
  const { data, trace, params } = props;
  const by = params["by"] === "shape" ? "shape" : "name";
  const asked = useQuery(
    () => loadTable(data, trace.id, "operators", { by }, { where: OPERATORS }, MOST_ROWS),
    `${trace.id} ${by}`,
  );
  return (
    <div class="roofline">
      <header class="roofline-tools">
        <h1>Roofline</h1>
        <Choice
          label="A point is"
          value={by}
          choices={[["name", "an operator"], ["shape", "an operator with its shapes"]]}
          onChange={(chosen) => change({ by: chosen === "name" ? undefined : chosen })}
        />
      </header>
      <QueryResult asked={asked} what="the operators">{(table) => <Shown table={table} by={by} />}</QueryResult>
    </div>
  );
}

const DEVICE: TimeColumns = { self: "self_device_time_total", total: "device_time_total" };
const HOST: TimeColumns = { self: "self_cpu_time_total", total: "cpu_time_total" };

/** Device time where the trace has some, else the host's. */
function timesOf(table: FullTable): TimeColumns {
  return numbers(table, DEVICE.self).some((time) => time > 0) ? DEVICE : HOST;
}

function Shown({ table, by }: { table: FullTable; by: string }) {
  const times = timesOf(table);
  const roofline = useMemo(() => rooflineOf(table, times), [table, times]);
  const { points } = roofline;
  if (points.length === 0) {
    return <MissingData title="No operator has a model of what it computes" lacks={table.lacks} />;
  }
  const open = (at: number) => {
    const point = points[at];
    if (point !== undefined) location.hash = addressOf(point, times, by);
  };
  return (
    <>
      <Summary roofline={roofline} isOnDevice={times === DEVICE} />
      <Chart
        label="Operations a second over operations for each byte"
        height={520}
        option={(colour) => chartOf(roofline, colour)}
        of={JSON.stringify([by, points.length, points[0]])}
        count={points.length}
        picks="point"
        tip={(at) => <Tip point={points[at]} />}
        onPick={open}
        table={{ head: ["operator", "time", "share", "FLOPs/byte", "FLOP/s", "of the roof"], rows: points.map(cellsOf) }}
      />
    </>
  );
}

function Summary({ roofline, isOnDevice }: { roofline: Roofline; isOnDevice: boolean }) {
  const { whole, modelled, roofs } = roofline;
  return (
    <p class="muted">
      {text(modelled / whole, "ratio")} of the {isOnDevice ? "device" : "CPU"} time of operators is drawn: the others
      have no model of what they compute. The area of a dot is its time.{" "}
      {roofs.length === 0 && "The peaks of the device are unknown, so there is no roof. "}
      Click one for its row.
    </p>
  );
}

function addressOf(point: RooflinePoint, times: TimeColumns, by: string): string {
  const where: Filter[] = [...OPERATORS, { column: "name", op: "is", value: point.name }];
  return link("operators", { sort: `-${times.total}`, where: JSON.stringify(where), ...(by === "shape" ? { by } : {}) });
}

function Tip({ point }: { point: RooflinePoint | undefined }) {
  if (point === undefined) return null;
  return (
    <>
      <strong>{plain(point.name)}</strong>
      {point.shapes !== null && <span class="roofline-shapes">{plain(point.shapes)}</span>}
      <span>time</span><span class="number">{timeText(point.time)}, {text(point.share, "ratio")}</span>
      <span>computes</span><span class="number">{text(point.rate, "flops/s")}</span>
      <span>for each byte</span><span class="number">{text(point.intensity, "flops/byte")}</span>
      <span>of the roof</span><span class="number">{ofRoofText(point)}</span>
    </>
  );
}

function ofRoofText({ rate, roof, boundBy }: RooflinePoint): string {
  if (roof === null) return UNKNOWN;
  return `${text(rate / roof, "ratio")} of ${boundBy === "memory" ? "the memory's" : "the peak"}`;
}

function cellsOf(point: RooflinePoint): string[] {
  const { name, time, share, intensity, rate } = point;
  return [plain(name), timeText(time), text(share, "ratio"), text(intensity, "flops/byte"), text(rate, "flops/s"), ofRoofText(point)];
}

export const roofline: Panel = {
  name: "roofline",
  title: "Roofline",
  group: "device",
  component: RooflinePanel,
  view: "operators",
};
