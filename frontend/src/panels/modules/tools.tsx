// The controls of the modules panel.

import { Choice } from "../../parts/controls/choice.tsx";
import { Find } from "../../parts/controls/find.tsx";
import { change } from "../../route.ts";
import { shareText } from "../../units.ts";
import type { PanelProps } from "../panel.ts";
import type { Forest } from "./forest.ts";

export function Tools(props: {
  params: PanelProps["params"];
  forest: Forest;
  found: { count: number; share: number } | null;
}) {
  const { params, forest, found } = props;
  const told = found === null ? undefined
    : found.count === 0 ? "nothing matches"
    : `${found.count} match: ${shareText(found.share)}`;
  return (
    <div class="modules-tools">
      <h1>Modules</h1>
      <Choice
        label="Time"
        value={forest.metric}
        choices={[["device", "device"], ["host", "host"]]}
        onChange={(metric) => change({ metric, sort: undefined })}
      />
      <Choice
        label="Rows"
        value={params["by"] === "class" ? "class" : "module"}
        choices={[
          ["module", "tree", "each module within what is around it"],
          ["class", "classes", "all modules of a class together"],
        ]}
        onChange={(by) => change({
          by: by === "class" ? by : undefined, root: undefined, at: undefined, toggled: undefined,
        })}
      />
      <Find
        label="Search modules"
        value={params["find"] ?? ""}
        told={told}
        onChange={(find) => change({ find: find === "" ? undefined : find })}
      />
    </div>
  );
}
