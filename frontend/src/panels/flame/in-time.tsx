// The slices of one step in the order in which they began, thread by thread.

import { useMemo } from "preact/hooks";
import { QueryResult, useQuery } from "../../parts/data/asking.tsx";
import type { FullTable } from "../../parts/data/full-table.ts";
import { cell, loadTable, numbers } from "../../parts/data/full-table.ts";
import { plain } from "../../parts/text/plain.ts";
import { change } from "../../route.ts";
import { timeText } from "../../units.ts";
import type { PanelProps } from "../panel.ts";
import type { Step } from "./arrangement.ts";
import { AFRESH, detailOf, metricOf, typicalStep } from "./arrangement.ts";
import { framesInTime, threadsOf } from "./frames.ts";
import { Graph } from "./graph.tsx";

export function InTime(props: PanelProps) {
  const { data, trace } = props;
  // A report carries the whole recording.
  const asked = useQuery(async () => (data.inline ? [] : stepsOf(await loadTable(data, trace.id, "steps"))), trace.id);
  return <QueryResult asked={asked}>{(steps) => <Slices {...props} steps={steps} />}</QueryResult>;
}

function stepsOf(table: FullTable): Step[] {
  const time = numbers(table, "host_time");
  return numbers(table, "step").map((number, row) => ({
    number, counted: cell(table, "counted", row) === true, time: time[row] ?? 0,
  }));
}

interface SlicesProps extends PanelProps {
  steps: readonly Step[];
}

function Slices(props: SlicesProps) {
  const { data, trace, params, steps } = props;
  const step = params["step"] ?? typicalStep(steps)?.number.toString() ?? "";
  const options = {
    order: "time", metric: metricOf(params, data.inline), by: params["by"] ?? "stack", step, min_share: detailOf(params),
  };
  const key = JSON.stringify([trace.id, options]);
  const asked = useQuery(() => loadTable(data, trace.id, "flame", options), key);
  const pending = asked.state === "here" && asked.stale;
  return (
    <QueryResult asked={asked.state === "here" ? { ...asked, stale: false } : asked}>
      {(table) => <OfThread {...props} table={table} pending={pending} step={step} />}
    </QueryResult>
  );
}

function OfThread(props: SlicesProps & { table: FullTable; pending: boolean; step: string }) {
  const { table, params, steps, step } = props;
  const threads = useMemo(() => threadsOf(table), [table]);
  const asked = params["thread"] ?? "";
  const thread = threads.has(asked) ? asked : ([...threads.keys()][0] ?? "");
  const frames = useMemo(() => framesInTime(table, thread), [table, thread]);
  return (
    <Graph {...props} frames={frames}>
      {steps.length > 1 && (
        <label>
          step <select value={step} onChange={(event) => change({ ...AFRESH, step: event.currentTarget.value })}>
            {steps.map(({ number, counted, time }) => (
              <option key={number} value={number}>{number} · {timeText(time)}{counted ? "" : " · not counted"}</option>
            ))}
          </select>
        </label>
      )}
      {threads.size > 1 && (
        <label>
          thread <select value={thread} onChange={(event) => change({ ...AFRESH, thread: event.currentTarget.value })}>
            {[...threads].map(([name, time]) => <option key={name} value={name}>{plain(name)} · {timeText(time)}</option>)}
          </select>
        </label>
      )}
    </Graph>
  );
}
