// The controls of the modules panel.

import { Choice } from "../../parts/controls/choice.tsx";
import { Find } from "../../parts/controls/find.tsx";
import { change } from "../../route.ts";
import { shareText } from "../../units.ts";
import type { PanelProps } from "../panel.ts";
import type { Metric } from "./forest.ts";

/** What the rows are; `profile` without a word in the address. */
export type Grouping = "profile" | "category" | "module" | "class";

const GROUPINGS: readonly (readonly [Grouping, string, string])[] = [
  ["profile", "with operators", "modules, within them operators, within these kernels"],
  ["category", "kinds of work", "kinds of work such as gemm, within them operators, their shapes, and kernels"],
  ["module", "modules only", "each module within what is around it, with calls and memory"],
  ["class", "classes", "all modules of a class together"],
];

export function groupingOf(word: string | undefined): Grouping {
  return GROUPINGS.find(([known]) => known === word)?.[0] ?? "profile";
}

/** Rows of another table have other numbers. */
const ANEW = { root: undefined, at: undefined, toggled: undefined, sort: undefined };

export function Tools(props: {
  params: PanelProps["params"];
  metric: Metric;
  found: { count: number; share: number } | null;
  /** Whether one training pass can be chosen. */
  hasPasses?: boolean;
}) {
  const { params, metric, found, hasPasses = false } = props;
  const by = groupingOf(params["by"]);
  const told = found === null ? undefined
    : found.count === 0 ? "nothing matches"
    : `${found.count} match: ${shareText(found.share)}`;
  return (
    <div class="modules-tools">
      <h1>Modules</h1>
      <Choice
        label="Time"
        value={metric}
        choices={[["device", "device"], ["host", "host"]]}
        onChange={(chosen) => change({ metric: chosen, ...ANEW })}
      />
      <Choice
        label="Rows"
        value={by}
        choices={GROUPINGS}
        onChange={(chosen) => change({ by: chosen === "profile" ? undefined : chosen, ...ANEW })}
      />
      {(hasPasses || params["only"] !== undefined) && (
        <Choice
          label="Pass"
          value={params["only"] ?? "all"}
          choices={[["all", "all"], ["forward", "forward"], ["backward", "backward"], ["recompute", "recompute"]]}
          onChange={(only) => change({ only: only === "all" ? undefined : only, ...ANEW })}
        />
      )}
      <Find
        label="Search modules"
        value={params["find"] ?? ""}
        told={told}
        onChange={(find) => change({ find: find === "" ? undefined : find })}
      />
    </div>
  );
}
