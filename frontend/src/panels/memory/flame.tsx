// The flame graph of the memory at the peak, or at a chosen time.

import { useMemo } from "preact/hooks";
import type { Span } from "../../draw/span.ts";
import type { Box } from "../../draw/tree.ts";
import { matchedWeight, matches, nodesOfBox } from "../../draw/tree.ts";
import { Choice } from "../../parts/controls/choice.tsx";
import { Find } from "../../parts/controls/find.tsx";
import { QueryResult, useQuery } from "../../parts/data/asking.tsx";
import type { FullTable } from "../../parts/data/full-table.ts";
import { loadTable, number } from "../../parts/data/full-table.ts";
import { plain } from "../../parts/text/plain.ts";
import { change, link } from "../../route.ts";
import { bytesText, countText, instantText, shareText } from "../../units.ts";
import { COLOURS, label } from "../flame/frames.ts";
import type { PanelProps } from "../panel.ts";
import type { Curve } from "./curves.ts";
import { ofDevice } from "./curves.ts";
import type { Allocations, NodeFacts } from "./allocations.ts";
import { allocationsOf, linkOf, nodeFacts } from "./allocations.ts";
import { Against } from "./against.tsx";
import { versusOf } from "./differences.ts";
import { FlameOfDifference } from "./flame-difference.tsx";
import { FocusedIcicle } from "./focused-icicle.tsx";
import { OnlyThePeak } from "./holders.tsx";
import type { When } from "./stretch.ts";
import { whenOf } from "./stretch.ts";

const TREES = [
  ["stack", "calls", "Python frames, modules and operators as they called each other"],
  ["module", "modules", "without plain frames; backward within its module"],
  ["line", "lines", "files, their lines, and the operators in these"],
] as const;

export interface FlameProps extends PanelProps {
  curve: Curve;
  brush: Span | null;
  at: number | null;
}

export function MemoryFlame(props: FlameProps) {
  const { data, trace, curve, params } = props;
  // A report carries the peak of the whole recording; that of a stretch is with the trace.
  const when = data.inline ? whenOf(null, null) : whenOf(props.brush, props.at);
  const by = TREES.find(([known]) => known === params["tree"])?.[0] ?? "stack";
  const where = ofDevice(curve);
  const versus = data.inline ? null : versusOf(params["versus"]);
  const key = JSON.stringify([trace.id, by, when, where]);
  const asked = useQuery(() => loadTable(data, trace.id, "memory_flame", { by, ...when.options }, { where }), key);
  return (
    <section class="memory-flame" aria-label="What allocated the memory">
      <Choice label="By" value={by} choices={TREES} onChange={(tree) => change({ tree: tree === "stack" ? undefined : tree, focus: undefined })} />
      {!data.inline && <Against {...props} when={when} />}
      {data.inline && (props.brush ?? props.at) !== null && <OnlyThePeak />}
      <QueryResult asked={asked} what="what allocated it">
        {(table) => versus === null
          ? <Graph {...props} table={table} when={when} />
          : <FlameOfDifference {...props} after={table} by={by} versus={versus} when={when} />}
      </QueryResult>
    </section>
  );
}

function Graph(props: FlameProps & { table: FullTable; when: When }) {
  const { table, curve, params, when } = props;
  const allocations = useMemo(() => allocationsOf(table), [table]);
  const { tree, kind } = allocations;
  const find = params["find"] ?? "";
  const hits = useMemo(() => (find === "" ? null : matches(tree, find)), [tree, find]);
  const look = useMemo(() => ({
    colour: (node: number) => COLOURS[kind[node] ?? ""] ?? "other",
    label: (box: Box) => labelOf(allocations, box),
    linked: (node: number) => linkOf(allocations, node),
  }), [allocations]);
  const time = number(table, "time", 0);
  if (tree.whole === 0 || time === null) return <p class="muted">Nothing is allocated on {plain(curve.title)} then.</p>;
  return (
    <FocusedIcicle
      tree={tree}
      params={params}
      title="Allocated memory by what allocated it"
      look={look}
      describe={(node) => `${plain(tree.name[node] ?? "")}: ${bytesText(tree.total[node] ?? 0)}`}
      hits={hits}
      summary={
        <>
          <span><strong>{bytesText(tree.whole)}</strong> {plain(curve.title)}, {when.words}, {instantText(time)}</span>
          {hits !== null && (
            <span role="status" class="memory-found">
              {hits.size === 0 ? "nothing matches" : `${hits.size} nodes match: ${shareText(matchedWeight(tree, hits) / tree.whole)}`}
            </span>
          )}
        </>
      }
      find={<Find label="Search names" value={find} onChange={(next) => change({ find: next === "" ? undefined : next })} />}
      details={(node) => <Details node={nodeFacts(allocations, node)} />}
    />
  );
}

function labelOf({ tree, kind }: Allocations, box: Box): string {
  const name = plain(label(tree.name[box.node] ?? "", kind[box.node] ?? ""));
  const others = nodesOfBox(tree, box).length - 1;
  return others > 0 ? `${name}  +${others}` : name;
}

function Details({ node }: { node: NodeFacts }) {
  const { file, line } = node;
  return (
    <p class="memory-node">
      <span class="mono" title={plain(node.name)}>{plain(node.name)}</span>
      <span>{bytesText(node.total)}</span>
      <span>{shareText(node.share)} <span class="muted">of all</span></span>
      {node.own > 0 && node.own < node.total && <span>{bytesText(node.own)} <span class="muted">by itself</span></span>}
      {node.blocks > 0 && <span>{countText(node.blocks)} <span class="muted">{node.blocks === 1 ? "block" : "blocks"}</span></span>}
      {file !== null && line !== null && <a href={link("lines", { file, line: String(line) })}>source line</a>}
    </p>
  );
}
