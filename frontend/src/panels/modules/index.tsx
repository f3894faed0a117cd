// The panel of modules: an icicle and a table of the same tree, of operators within modules or of
// modules alone.

import "./style.css";
import { useMemo } from "preact/hooks";
import { ROW } from "../../draw/icicle.ts";
import type { Box } from "../../draw/tree.ts";
import { QueryResult, useQuery } from "../../parts/data/asking.tsx";
import { Icicle } from "../../parts/trees/icicle.tsx";
import { KEYS } from "../../parts/controls/keys.tsx";
import { MissingData } from "../../parts/text/missing-data.tsx";
import { plain } from "../../parts/text/plain.ts";
import type { FullTable } from "../../parts/data/full-table.ts";
import { numbers, loadTable } from "../../parts/data/full-table.ts";
import { timeText } from "../../units.ts";
import type { Panel, PanelProps } from "../panel.ts";
import { Details } from "./details.tsx";
import type { Forest } from "./forest.ts";
import { forestOf } from "./forest.ts";
import { ProfileOfOperators } from "./profile/index.tsx";
import { Rows } from "./rows.tsx";
import { groupingOf, Tools } from "./tools.tsx";
import { useTreeChoice } from "./tree-choice.ts";

KEYS["modules"] = [
  ["↑ ↓", "row by row"],
  ["→ ←", "open, close; into it, out of it"],
  ["Enter, double click", "only this module"],
  ["Backspace", "what is around it"],
];

function Modules(props: PanelProps) {
  const by = groupingOf(props.params["by"]);
  const isPlain = by === "module" || by === "class";
  return (
    <div class={isPlain ? "modules" : "modules modules-profile"}>
      {isPlain ? <ModulesOnly key={by} {...props} by={by} /> : <ProfileOfOperators {...props} />}
    </div>
  );
}

function ModulesOnly(props: PanelProps & { by: "module" | "class" }) {
  const { data, trace, by } = props;
  const asked = useQuery(() => loadTable(data, trace.id, "modules", { by }), `${trace.id} ${by}`);
  return <QueryResult asked={asked}>{(table) => <Shown {...props} table={table} />}</QueryResult>;
}

function Shown(props: PanelProps & { table: FullTable }) {
  const { table, params } = props;
  const metric = params["metric"];
  const forest = useMemo(() => forestOf(table, metric), [table, metric]);
  if (table.rows === 0) {
    return (
      <>
        <Tools params={params} metric={forest.metric} found={null} />
        <MissingData title="No module is in this recording" lacks={table.lacks}>
          {table.lacks.length === 0 && <p>No `nn.Module` was called while it was recorded.</p>}
        </MissingData>
      </>
    );
  }
  return <Both {...props} forest={forest} />;
}

function Both(props: PanelProps & { forest: Forest }) {
  const { params, forest } = props;
  const { tree } = forest;
  const { root, at, hits, found, shown, choose, focus, hover } = useTreeChoice(tree, params);
  const isTree = tree.roots.length < tree.name.length;
  const colour = useMemo(() => colouring(forest), [forest]);
  const label = useMemo(() => (box: Box) => plain(tree.name[box.node] ?? ""), [tree]);
  return (
    <>
      <Tools params={params} metric={forest.metric} found={found} />
      {isTree && (
        <Icicle
          height={Math.min(deepest(forest) * ROW, 12 * ROW)}
          tree={tree}
          colour={colour}
          label={label}
          describe={(node) => `${plain(tree.name[node] ?? "")}: ${timeText(tree.total[node] ?? 0)}`}
          focus={root}
          cursor={at}
          hits={hits}
          title={`${forest.metric} time by module`}
          onHover={hover}
          onChoose={choose}
          onPress={choose}
          onFocus={focus}
        />
      )}
      <Rows forest={forest} params={params} root={root} at={at} hits={hits} onChoose={choose} onFocus={focus} />
      <Details {...props} node={shown} root={root} onFocus={focus} />
    </>
  );
}

function deepest({ table }: Forest): number {
  return numbers(table, "depth").reduce((most, depth) => Math.max(most, depth + 1), 1);
}

const HUES = ["operator", "mark", "memory", "kernel", "copy", "collective", "runtime", "python"];

/** The colour of each class; the costliest classes choose first. */
function colouring(forest: Forest): (node: number) => string {
  const { table, outside } = forest;
  const classes = [...new Set((table.columns["class"] ?? []).map(String))];
  const hues = new Map(classes.map((name, at) => [name, HUES[at % HUES.length] ?? "other"]));
  return (node) => (node === outside ? "idle" : (hues.get(String(table.columns["class"]?.[node])) ?? "other"));
}

export const modules: Panel = { name: "modules", title: "Modules", group: "code", component: Modules, view: "op_profile" };
