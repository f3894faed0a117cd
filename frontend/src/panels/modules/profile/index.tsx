// Modules or kinds of work, their operators and kernels, by time and by achieved share of the peak.

import { useMemo } from "preact/hooks";
import { ROW } from "../../../draw/icicle.ts";
import type { Box } from "../../../draw/tree.ts";
import { QueryResult, useQuery } from "../../../parts/data/asking.tsx";
import type { FullTable } from "../../../parts/data/full-table.ts";
import { loadTable, number, numbers } from "../../../parts/data/full-table.ts";
import { MissingData, MissingDataNote } from "../../../parts/text/missing-data.tsx";
import { plain } from "../../../parts/text/plain.ts";
import { Icicle } from "../../../parts/trees/icicle.tsx";
import { timeText } from "../../../units.ts";
import type { PanelProps } from "../../panel.ts";
import { Tools } from "../tools.tsx";
import { useTreeChoice } from "../tree-choice.ts";
import { Details } from "./details.tsx";
import type { Profile } from "./profile.ts";
import { achievedColour, profileOf } from "./profile.ts";
import { Rows } from "./rows.tsx";

export function ProfileOfOperators(props: PanelProps) {
  const { data, trace, params } = props;
  const options = optionsOf(params);
  const asked = useQuery(() => loadTable(data, trace.id, "op_profile", options), JSON.stringify([trace.id, options]));
  return <QueryResult asked={asked} what="the profile">{(table) => <Shown {...props} table={table} />}</QueryResult>;
}

/** Strong enough that classes are told apart, faint enough that names can be read. */
const STRONG = () => 0.8;

/** Only what differs from the view's defaults, so that a report has the table. */
function optionsOf(params: PanelProps["params"]): Record<string, string> {
  const { by, metric, only } = params;
  return {
    ...(by === "category" ? { by } : {}),
    ...(metric === "host" || metric === "device" ? { metric } : {}),
    ...(only === "forward" || only === "backward" || only === "recompute" ? { only } : {}),
  };
}

function Shown(props: PanelProps & { table: FullTable }) {
  const { table, params } = props;
  const profile = useMemo(() => profileOf(table), [table]);
  if (table.rows === 0) {
    return (
      <>
        <Tools params={params} metric={params["metric"] === "host" ? "host" : "device"} found={null} hasPasses={false} />
        <MissingData title="There is no such time in this recording" lacks={table.lacks}>
          {table.lacks.length === 0 && <p>Nothing was recorded of the time that was asked for.</p>}
        </MissingData>
      </>
    );
  }
  return <Both {...props} profile={profile} />;
}

function Both(props: PanelProps & { profile: Profile }) {
  const { params, profile } = props;
  const { tree, table } = profile;
  const { root, at, hits, found, shown, choose, focus, hover } = useTreeChoice(tree, params);
  const colour = useMemo(() => (node: number) => achievedColour(number(table, "achieved_share", node)), [table]);
  const isUnknown = useMemo(() => (node: number) => number(table, "achieved_share", node) === null, [table]);
  const label = useMemo(() => (box: Box) => plain(tree.name[box.node] ?? ""), [tree]);
  return (
    <>
      <Tools params={params} metric={profile.onDevice ? "device" : "host"} found={found} hasPasses={hasPasses(profile)} />
      {!profile.byModule && params["by"] !== "category" && <WithoutModules {...props} />}
      <Icicle
        height={Math.min(deepest(table), 9) * ROW}
        tree={tree}
        colour={colour}
        strength={STRONG}
        hatched={isUnknown}
        label={label}
        describe={(node) => `${plain(tree.name[node] ?? "")}: ${timeText(tree.total[node] ?? 0)}`}
        focus={root}
        cursor={at}
        hits={hits}
        title={`${profile.onDevice ? "device" : "host"} time by ${profile.byModule ? "module" : "kind of work"}, coloured by achieved share of the peak`}
        onHover={hover}
        onChoose={choose}
        onPress={choose}
        onFocus={focus}
      />
      <Rows profile={profile} params={params} root={root} at={at} hits={hits} onChoose={choose} onFocus={focus} />
      <Details views={props.views} profile={profile} hasPasses={hasPasses(profile)} node={shown} root={root} onFocus={focus} />
    </>
  );
}

function deepest(table: FullTable): number {
  return numbers(table, "depth").reduce((most, depth) => Math.max(most, depth + 1), 1);
}

function hasPasses({ table }: Profile): boolean {
  return ["backward_time", "recompute_time"].some((name) => numbers(table, name).some((time) => time > 0));
}

/** Why the outermost rows are kinds of work, and not modules. */
function WithoutModules({ data, trace }: PanelProps) {
  const asked = useQuery(() => loadTable(data, trace.id, "modules", {}, { columns: ["name"] }, 1), trace.id);
  return (
    <QueryResult asked={asked} what="what is missing">
      {({ lacks }) => <MissingDataNote lacks={lacks} />}
    </QueryResult>
  );
}
