// The comparison of two recordings: steps, their accounts, parts of the step, tree and kernels.

import { useMemo } from "preact/hooks";
import type { Compared, Metric, Pair } from "../../data/api.ts";
import { QueryResult, useQuery } from "../../parts/data/asking.tsx";
import { Choice } from "../../parts/controls/choice.tsx";
import type { FullTable } from "../../parts/data/full-table.ts";
import { fullTableOf } from "../../parts/data/full-table.ts";
import { labelsOf } from "../../parts/data/labels.ts";
import { change } from "../../route.ts";
import type { PanelProps } from "../panel.ts";
import { AccountDifference } from "./account.tsx";
import { deltasOf } from "./trees/deltas.ts";
import { Headline } from "./headline.tsx";
import { differenceRows } from "./tables/merging.ts";
import { Parts } from "./parts.tsx";
import { RunDifference } from "./run.tsx";
import { Sheet } from "./tables/sheet.tsx";
import { Tree } from "./trees/tree.tsx";

export interface DifferenceProps extends PanelProps {
  pair: Pair;
}

export function Difference(props: DifferenceProps) {
  const { data, pair, params } = props;
  const metric = metricOf(params["metric"]);
  const key = JSON.stringify([pair.before, pair.after, metric]);
  const asked = useQuery(() => data.compare(pair, metric), key);
  return (
    <QueryResult asked={asked} what="both traces">{(found) => <Shown {...props} found={found} />}</QueryResult>
  );
}

function metricOf(word: string | undefined): Metric | null {
  return word === "host" || word === "device" ? word : null;
}

function Shown(props: DifferenceProps & { found: Compared }) {
  const { found, params } = props;
  const tables = useMemo(() => {
    const { account, steps, parts, tree, kernels, kernel_names: names, run_parts: runParts, run_steps: runSteps } = found.tables;
    return {
      runParts: fullTableOf(runParts), runSteps: fullTableOf(runSteps),
      account: fullTableOf(account), steps: fullTableOf(steps), parts: fullTableOf(parts), kernels: fullTableOf(kernels), names: fullTableOf(names),
      deltas: deltasOf(fullTableOf(tree), found.metric),
    };
  }, [found]);
  return (
    <div class="compare-told">
      <Headline said={found.said} notes={found.notes} />
      {tables.runParts.rows > 0 && (
        <RunDifference
          parts={tables.runParts} steps={tables.runSteps} labels={labelsOf(found.specs.run_parts, "part")} params={params}
        />
      )}
      {tables.account.rows > 0 && (
        <AccountDifference account={tables.account} labels={labelsOf(found.specs.account, "class")} params={params} />
      )}
      <Parts parts={tables.parts} params={params} />
      <Tree {...props} deltas={tables.deltas} metrics={found.metrics} />
      {tables.kernels.rows > 0 && <Kernels {...props} classes={tables.kernels} names={tables.names} />}
    </div>
  );
}

function Kernels(props: DifferenceProps & { classes: FullTable; names: FullTable }) {
  const { classes, names, params, pair } = props;
  const byName = params["kernels"] === "name";
  const table = byName ? names : classes;
  const rows = useMemo(() => differenceRows(table, ["what", "count_before", "count_after"]), [table]);
  const left = table.total - table.rows;
  return (
    <section class="compare-section" aria-label="Kernels and copies">
      <div class="compare-head-line">
        <h2>Kernels and copies <span class="muted">time of the device a step</span></h2>
        <Choice
          label="by"
          value={byName ? "name" : "class"}
          choices={[["class", "class"], ["name", "name"]]}
          onChange={(by) => change({ kernels: by === "class" ? undefined : by, "sort-kernels": undefined })}
        />
        {left > 0 && <span class="muted">{left} more are not carried</span>}
      </div>
      <Sheet
        key={String(byName)}
        rows={rows}
        heads={[byName ? "Name" : "Class", "Runs before", "Runs after"]}
        params={params}
        inOrder
        word="sort-kernels"
        find={params["find"] ?? ""}
        linkTo={byName ? (key) => ["kernels", { find: String(key[0]) }] : null}
        pair={pair}
        totals
        label="Kernels and copies"
      />
    </section>
  );
}
