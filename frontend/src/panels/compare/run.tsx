// The run before and after: its parts, and its steps by kind.

import { useMemo } from "preact/hooks";
import { labelOfValue } from "../../parts/data/labels.ts";
import type { Labels } from "../../parts/data/labels.ts";
import type { FullTable } from "../../parts/data/full-table.ts";
import type { PanelProps } from "../panel.ts";
import { differenceRows } from "./tables/merging.ts";
import { Sheet } from "./tables/sheet.tsx";

export function RunDifference(props: { parts: FullTable; steps: FullTable; labels: Labels; params: PanelProps["params"] }) {
  const { parts, steps, labels, params } = props;
  const partRows = useMemo(() => differenceRows(parts, ["part", "count_before", "count_after"]), [parts]);
  const stepRows = useMemo(() => differenceRows(steps, ["kind", "time", "steps_before", "steps_after"]), [steps]);
  return (
    <>
      <section class="compare-section" aria-label="The run by part">
        <h2>The run by part <span class="muted">of the wall time</span></h2>
        <Sheet
          rows={partRows.map((row) => ({ ...row, key: [labelOfValue(labels, String(row.key[0])).text, ...row.key.slice(1)] }))}
          heads={["Part of the run", "Times before", "Times after"]}
          params={params} inOrder word="sort-run" find="" linkTo={null} totals label="Parts of the run"
        />
      </section>
      {stepRows.length > 0 && (
        <section class="compare-section" aria-label="The steps of the run">
          <h2>The steps of the run <span class="muted">by kind</span></h2>
          <Sheet
            rows={stepRows} heads={["Kind", "Of a step", "Steps before", "Steps after"]}
            params={params} inOrder word="sort-run-steps" find="" linkTo={null} totals={false} label="Steps of the run"
          />
        </section>
      )}
    </>
  );
}
