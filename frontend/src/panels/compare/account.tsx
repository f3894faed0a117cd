// What a step is spent on before and after, along its critical path: the largest differences first.

import { useMemo } from "preact/hooks";
import type { Cell } from "../../data/api.ts";
import { labelOfValue } from "../../parts/data/labels.ts";
import type { Labels } from "../../parts/data/labels.ts";
import type { FullTable } from "../../parts/data/full-table.ts";
import type { PanelProps } from "../panel.ts";
import { differenceRows } from "./tables/merging.ts";
import { Sheet } from "./tables/sheet.tsx";

/** The class of time in words, and the name of what ran. */
function spentOn([time, what]: readonly Cell[], labels: Labels): string {
  const label = labelOfValue(labels, String(time)).text;
  return what === null || what === undefined ? label : `${label} in ${String(what)}`;
}

/** The line on both sides; one number if it did not move. */
function linesOf([, , , before, after]: readonly Cell[]): string | null {
  const lines = [...new Set([before, after].filter((line) => line !== null && line !== undefined))];
  return lines.length === 0 ? null : lines.join(" → ");
}

export function AccountDifference(props: { account: FullTable; labels: Labels; params: PanelProps["params"] }) {
  const { account, labels, params } = props;
  const rows = useMemo(() => differenceRows(account, ["class", "what", "function", "line_before", "line_after"]), [account]);
  const left = account.total - account.rows;
  return (
    <section class="compare-section" aria-label="What a step is spent on">
      <h2>
        What a step is spent on <span class="muted">along its critical path</span>
        {left > 0 && <span class="muted"> {left} more are not carried</span>}
      </h2>
      <Sheet
        rows={rows.map((row) => ({ ...row, key: [spentOn(row.key, labels), linesOf(row.key)] }))}
        heads={["Spent on", "Line"]}
        params={params} inOrder word="sort-account" find={params["find"] ?? ""} linkTo={null} totals label="The account of the step"
      />
    </section>
  );
}
