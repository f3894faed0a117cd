// The panel of source lines: files, lines of a file, and what ran on the chosen line.

import "./style.css";
import { useLayoutEffect, useMemo } from "preact/hooks";
import { QueryResult, useQuery } from "../../parts/data/asking.tsx";
import { EditorChoice, EditorLink } from "../../parts/code/editor-link.tsx";
import { SourceAt } from "../../parts/code/source.tsx";
import { plain } from "../../parts/text/plain.ts";
import { Choice } from "../../parts/controls/choice.tsx";
import { KEYS } from "../../parts/controls/keys.tsx";
import { MissingData, MissingDataNote } from "../../parts/text/missing-data.tsx";
import type { FullTable } from "../../parts/data/full-table.ts";
import { loadTable } from "../../parts/data/full-table.ts";
import { change } from "../../route.ts";
import type { Panel, PanelProps } from "../panel.ts";
import type { Cost, Costs } from "./costs.ts";
import { initialLine, costsOf, nextHot } from "./costs.ts";
import { Files } from "./files.tsx";
import { chooseLine, Listing } from "./listing.tsx";
import { Ran } from "./ran.tsx";
import { placeText } from "../../parts/text/place.ts";

KEYS["lines"] = [
  ["n, N", "the next line by cost, the one before"],
  ["↑ ↓", "line by line"],
  ["c", "only lines with a cost, or all"],
];

const COLUMNS = [
  "file", "line", "function", "how", "device_time", "self_cpu_time", "waits", "total_device_time",
  "total_cpu_time", "operators", "backward_device_time", "backward_cpu_time", "recompute_device_time",
  "recompute_cpu_time", "python_time", "cpu_memory", "device_memory",
];

function Lines(props: PanelProps) {
  const { data, trace, params } = props;
  const counted = params["counted"] === "true";
  const ask = () => loadTable(data, trace.id, "lines", { counted }, { columns: COLUMNS });
  const asked = useQuery(ask, `${trace.id} ${counted}`);
  return (
    <div class="lines">
      <QueryResult asked={asked}>{(table) => <Shown {...props} table={table} />}</QueryResult>
    </div>
  );
}

/** A line that the ledger of a run names: nothing was recorded on it. */
function Named(props: PanelProps & { file: string; line: number }) {
  const { data, trace, file, line } = props;
  return (
    <section>
      <h2 class="mono">{plain(placeText(file, line))}</h2>
      <SourceAt data={data} trace={trace.id} file={file} line={line} around={20} />
    </section>
  );
}

function Shown(props: PanelProps & { table: FullTable }) {
  const { table, params } = props;
  const metric = params["metric"];
  const costs = useMemo(() => costsOf(table, metric), [table, metric]);
  if (costs.ranked.length === 0) {
    const [file, line] = [params["file"], Number(params["line"])];
    return (
      <>
        <h1>Lines</h1>
        {file !== undefined && line > 0 && <Named {...props} file={file} line={line} />}
        <MissingData title="No source line is known" lacks={table.lacks}>
          {table.lacks.length === 0 && <p>Nothing ran in Python code while it was recorded.</p>}
        </MissingData>
      </>
    );
  }
  return <Both {...props} costs={costs} />;
}

function Both(props: PanelProps & { table: FullTable; costs: Costs }) {
  const { costs, params, table } = props;
  const at = initialLine(costs, params["file"], params["line"]);
  const cost = costs.ranked.find((known) => known.file === at?.file && known.line === at?.line);
  const only = params["only"] === "true";
  useKeys(costs, cost, only);
  const file = at === null ? undefined : costs.files.find((known) => known.file === at.file);
  return (
    <>
      <Tools {...props} cost={cost} only={only} />
      <MissingDataNote lacks={table.lacks} />
      <div class="lines-both">
        <Files costs={costs} shown={at?.file ?? null} />
        {at !== null && (
          <div class="lines-file">
            <Listing {...props} file={at.file} line={at.line} costs={costs} of={file} only={only} />
            <Ran {...props} file={at.file} line={at.line} cost={cost} metric={costs.metric} />
          </div>
        )}
      </div>
    </>
  );
}

function useKeys(costs: Costs, at: Cost | undefined, only: boolean): void {
  useLayoutEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement | null;
      if (/^(?:INPUT|TEXTAREA|SELECT)$/.test(target?.tagName ?? "")) return;
      if (event.altKey || event.ctrlKey || event.metaKey || event.defaultPrevented) return;
      if (event.key === "c") return change({ only: only ? undefined : "true" });
      if (event.key !== "n" && event.key !== "N") return;
      const next = nextHot(costs, at, event.key === "n" ? 1 : -1);
      if (next !== undefined) chooseLine(next);
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, [costs, at, only]);
}

function Tools(props: { costs: Costs; cost: Cost | undefined; only: boolean; params: PanelProps["params"] }) {
  const { costs, cost, only, params } = props;
  const [hotter, colder] = [nextHot(costs, cost, -1), nextHot(costs, cost, 1)];
  const place = cost === undefined ? 0 : costs.ranked.indexOf(cost) + 1;
  return (
    <div class="lines-tools">
      <h1>Lines</h1>
      {costs.hasDevice && (
        <Choice
          label="Hottest by"
          value={costs.metric}
          choices={[
            ["device", "device time", "what the line launched"],
            ["host", "host time", "time in the line itself, waits left out"],
          ]}
          onChange={(metric) => change({ metric, file: undefined, line: undefined })}
        />
      )}
      <label>
        <input type="checkbox" checked={only} onChange={() => change({ only: only ? undefined : "true" })} /> lines with a cost only
      </label>
      <label title="Without the first step, partial steps and outliers">
        <input
          type="checkbox"
          checked={params["counted"] === "true"}
          onChange={(event) => change({ counted: event.currentTarget.checked ? "true" : undefined })}
        /> counted steps only
      </label>
      <EditorChoice />
      <span class="lines-hot">
        {cost !== undefined && cost.line !== null && <EditorLink file={cost.file} line={cost.line} />}
        <span class="muted number">{place > 0 ? `${place} of ${costs.ranked.length} lines by cost` : ""}</span>
        <button type="button" disabled={!hotter || place <= 1} title="The line before, by cost (N)" onClick={() => hotter && chooseLine(hotter)}>hotter</button>
        <button type="button" disabled={!colder} title="The next line by cost (n)" onClick={() => colder && chooseLine(colder)}>next</button>
      </span>
    </div>
  );
}

export const lines: Panel = { name: "lines", title: "Lines", group: "code", component: Lines };
