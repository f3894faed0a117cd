// The steps in a picture, above the table of them.

import { Answered, useAsked } from "../../parts/asking.tsx";
import { StepBars } from "../../parts/stepbars.tsx";
import { STEP_COLUMNS, uncounted } from "../../parts/stepspan.ts";
import { whole } from "../../parts/whole.ts";
import type { Whole } from "../../parts/whole.ts";
import { text } from "../../units.ts";
import { Grid } from "../grid/grid.tsx";
import type { PanelProps } from "../panel.ts";

export function StepsPanel(props: PanelProps) {
  const { data, trace } = props;
  const asked = useAsked(() => whole(data, trace.id, "steps", {}, { columns: STEP_COLUMNS }), trace.id);
  return (
    <div class="steps">
      <Answered asked={asked} what="the steps">
        {(table) => (table.rows === 0 ? null : <Picture steps={table} />)}
      </Answered>
      <div class="steps-grid"><Grid {...props} view="steps" title="Steps" /></div>
    </div>
  );
}

function Picture(props: { steps: Whole }) {
  const { steps } = props;
  const out = uncounted(steps).length;
  const source = String(steps.columns["source"]?.[0] ?? "");
  return (
    <section class="steps-picture" aria-label="Steps">
      <p class="muted">
        {source === "window"
          ? "No steps are marked: the whole recording counts as one."
          : `${text(steps.total - out, "count")} of ${text(steps.total, "count")} steps count, found by the ${source}. `}
        Click one to see it in the timeline.
      </p>
      <StepBars steps={steps} height={300} />
    </section>
  );
}
