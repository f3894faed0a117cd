// Details of the chosen module, with links to other panels.

import { plain } from "../../parts/text/plain.ts";
import { path } from "../../draw/tree.ts";
import { number } from "../../parts/data/full-table.ts";
import { link } from "../../route.ts";
import { countedText, shareText, timeText } from "../../units.ts";
import type { PanelProps } from "../panel.ts";
import type { Forest } from "./forest.ts";
import { isUniqueName, passes } from "./forest.ts";
import { NodeFooter } from "./node-footer.tsx";
import { PassLegend } from "./passes.tsx";

interface DetailsProps extends PanelProps {
  forest: Forest;
  node: number;
  root: number;
  onFocus: (node: number) => void;
}

export function Details(props: DetailsProps) {
  const { forest, node, root, onFocus } = props;
  return (
    <NodeFooter tree={forest.tree} root={root} onFocus={onFocus}>
      {node < 0 ? <Legend /> : <Chosen {...props} />}
    </NodeFooter>
  );
}

function Legend() {
  return (
    <p>
      <PassLegend />
      <span class="muted">Shares are of all time recorded. Double click shows one module only.</span>
    </p>
  );
}

function Chosen(props: DetailsProps) {
  const { forest, node, views } = props;
  const { tree, table } = forest;
  const name = tree.name[node] ?? "";
  const isModule = node !== forest.outside && number(table, "id", node) !== null;
  const [forward, backward, recompute] = passes(forest, node);
  const calls = number(table, "calls", node);
  const within = `nn.Module: ${name}`;
  return (
    <>
      <p class="modules-path mono" title={plain(path(tree, node).map((at) => tree.name[at]).join(" › "))}>
        {path(tree, node).map((at) => plain(tree.name[at] ?? "")).join(" › ")}
      </p>
      <p class="modules-figures">
        <span>{timeText(tree.total[node] ?? 0)} <span class="muted">{forest.metric} time</span></span>
        <span>{shareText(tree.whole > 0 ? (tree.total[node] ?? 0) / tree.whole : 0)} <span class="muted">of all</span></span>
        {calls !== null && calls > 0 && (
          <span>{timeText((tree.total[node] ?? 0) / calls)} <span class="muted">a call, {countedText(calls, "call")}</span></span>
        )}
        {backward + recompute > 0 && (
          <span class="muted">
            forward {timeText(forward)}, backward {timeText(backward)}{recompute > 0 && `, recomputed ${timeText(recompute)}`}
          </span>
        )}
        {isModule && isUniqueName(forest, node) && <a href={link("operators", { within })}>its operators</a>}
        {isModule && <a href={link("flame", { by: "module", find: name })}>in the flame graph</a>}
        {isModule && views.has("occurrences") && <a href={link("occurrences", { name: within })}>its calls in the timeline</a>}
      </p>
    </>
  );
}
