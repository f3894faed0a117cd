// Every step as a bar, and the same as a table.

import "./style.css";
import type { Panel, PanelProps } from "../panel.ts";
import { QueryResult, useQuery } from "../../parts/data/asking.tsx";
import { StepBars } from "../../parts/steps/stepbars.tsx";
import { STEP_COLUMNS, uncountedSteps } from "../../parts/steps/stepspan.ts";
import { loadTable, type FullTable } from "../../parts/data/full-table.ts";
import { text } from "../../units.ts";
import { Grid } from "../grid/grid.tsx";

export const steps: Panel = {
  name: "steps",
  title: "Steps",
  group: "time",
  component: StepsPanel,
};

export function StepsPanel(props: PanelProps) {
  const { data, trace } = props;
  const asked = useQuery(() => loadTable(data, trace.id, "steps", {}, { columns: STEP_COLUMNS }), trace.id);
  return (
    <div class="steps">
      <h1>Steps</h1>
      <QueryResult asked={asked} what="the steps">
        {(table) => (table.rows === 0 ? null : <Picture steps={table} />)}
      </QueryResult>
      <div class="steps-grid"><Grid {...props} view="steps" title="" /></div>
    </div>
  );
}

function Picture(props: { steps: FullTable }) {
  const { steps } = props;
  const out = uncountedSteps(steps).length;
  const source = String(steps.columns["source"]?.[0] ?? "");
  return (
    <section class="steps-picture" aria-label="Steps">
      <p class="muted">
        {source === "window"
          ? "No steps are marked: the whole recording counts as one."
          : `${text(steps.total - out, "count")} of ${text(steps.total, "count")} steps count, found by the ${source}. `}
        Click one to see it in the timeline.
      </p>
      <StepBars steps={steps} height={steps.rows === 1 ? 180 : 300} />
    </section>
  );
}
