// The panel of modules: an icicle and a table of the same tree, of operators within modules or of
// modules alone.

import "./style.css";
import { useMemo, useState } from "preact/hooks";
import { ROW } from "../../draw/icicle.ts";
import type { Box } from "../../draw/tree.ts";
import { matchedWeight, matches } from "../../draw/tree.ts";
import { QueryResult, useQuery } from "../../parts/data/asking.tsx";
import { Icicle } from "../../parts/trees/icicle.tsx";
import { KEYS } from "../../parts/controls/keys.tsx";
import { MissingData } from "../../parts/text/missing-data.tsx";
import { plain } from "../../parts/text/plain.ts";
import type { FullTable } from "../../parts/data/full-table.ts";
import { numbers, loadTable } from "../../parts/data/full-table.ts";
import { change } from "../../route.ts";
import { timeText } from "../../units.ts";
import type { Panel, PanelProps } from "../panel.ts";
import { Details } from "./details.tsx";
import type { Forest } from "./forest.ts";
import { forestOf } from "./forest.ts";
import { ProfileOfOperators } from "./profile/index.tsx";
import { groupingOf, Tools } from "./tools.tsx";
import { Rows } from "./tree-table.tsx";

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

function nodeOf(word: string | undefined, forest: Forest): number {
  const node = Number(word ?? -1);
  return Number.isInteger(node) && node >= 0 && node < forest.tree.name.length ? node : -1;
}

function Both(props: PanelProps & { forest: Forest }) {
  const { params, forest } = props;
  const { tree } = forest;
  const [hover, setHover] = useState(-1);
  const root = nodeOf(params["root"], forest);
  const at = nodeOf(params["at"], forest);
  const find = params["find"] ?? "";
  const hits = useMemo(() => (find === "" ? null : matches(tree, find)), [tree, find]);
  const isTree = tree.roots.length < tree.name.length;
  const choose = (node: number) => change({ at: node < 0 ? undefined : String(node) });
  const focus = (node: number) => {
    const to = node < 0 ? undefined : String(node);
    change({ root: to, at: to ?? params["at"] }, { replace: false });
  };
  const found = hits && { count: hits.size, share: tree.whole > 0 ? matchedWeight(tree, hits) / tree.whole : 0 };
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
          onHover={(box) => setHover(box?.joined === 1 ? box.node : -1)}
          onChoose={choose}
          onPress={choose}
          onFocus={focus}
        />
      )}
      <Rows forest={forest} params={params} root={root} at={at} hits={hits} onChoose={choose} onFocus={focus} />
      <Details {...props} node={hover >= 0 ? hover : at >= 0 ? at : root} root={root} onFocus={focus} />
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
