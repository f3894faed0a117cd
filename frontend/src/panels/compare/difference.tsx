// What `selftime compare` tells of two recordings: steps, their parts, the tree, the kernels.

import { useMemo } from "preact/hooks";
import type { Compared, Metric, Pair } from "../../api.ts";
import { Answered, useAsked } from "../../parts/asking.tsx";
import { Choice } from "../../parts/choice.tsx";
import type { Whole } from "../../parts/whole.ts";
import { wholeOf } from "../../parts/whole.ts";
import { change } from "../../route.ts";
import type { PanelProps } from "../panel.ts";
import { deltasOf } from "./deltas.ts";
import { Headline } from "./headline.tsx";
import { differenceRows } from "./merging.ts";
import { Parts } from "./parts.tsx";
import { Sheet } from "./sheet.tsx";
import { Tree } from "./tree.tsx";

export interface DifferenceProps extends PanelProps {
  pair: Pair;
}

export function Difference(props: DifferenceProps) {
  const { data, pair, params } = props;
  const metric = metricOf(params["metric"]);
  const key = JSON.stringify([pair.before, pair.after, metric]);
  const asked = useAsked(() => data.compare(pair, metric), key);
  return (
    <Answered asked={asked} what="both traces">{(found) => <Shown {...props} found={found} />}</Answered>
  );
}

function metricOf(word: string | undefined): Metric | null {
  return word === "host" || word === "device" ? word : null;
}

function Shown(props: DifferenceProps & { found: Compared }) {
  const { found, params } = props;
  const tables = useMemo(() => {
    const { steps, parts, tree, kernels, kernel_names: names } = found.tables;
    return {
      steps: wholeOf(steps), parts: wholeOf(parts), kernels: wholeOf(kernels), names: wholeOf(names),
      deltas: deltasOf(wholeOf(tree), found.metric),
    };
  }, [found]);
  return (
    <div class="compare-told">
      <Headline said={found.said} notes={found.notes} />
      <Parts parts={tables.parts} params={params} />
      <Tree {...props} deltas={tables.deltas} metrics={found.metrics} />
      {tables.kernels.rows > 0 && <Kernels {...props} classes={tables.kernels} names={tables.names} />}
    </div>
  );
}

function Kernels(props: DifferenceProps & { classes: Whole; names: Whole }) {
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
