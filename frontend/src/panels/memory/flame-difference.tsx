// The difference flame graph of memory: what allocated more, or less, than what it is compared with.

import { useMemo } from "preact/hooks";
import type { Box, Link } from "../../draw/tree.ts";
import { nodesOfBox } from "../../draw/tree.ts";
import { QueryResult } from "../../parts/data/asking.tsx";
import type { FullTable } from "../../parts/data/full-table.ts";
import { plain } from "../../parts/text/plain.ts";
import { link } from "../../route.ts";
import { bytesText } from "../../units.ts";
import { label } from "../flame/frames.ts";
import { versusText } from "./against.tsx";
import { allocationsOf } from "./allocations.ts";
import type { Versus } from "./differences.ts";
import { signedBytes } from "./differences.ts";
import type { FlameDifference } from "./flame-differences.ts";
import { changeOf, flameDifference, strengthOf } from "./flame-differences.ts";
import { FocusedIcicle } from "./focused-icicle.tsx";
import type { FlameProps } from "./flame.tsx";
import { useOtherSide } from "./loading.ts";
import type { When } from "./stretch.ts";

interface DifferenceProps extends FlameProps {
  by: string;
  after: FullTable;
  versus: Versus;
  when: When;
}

export function FlameOfDifference(props: DifferenceProps) {
  const asked = useOtherSide(props, "memory_flame");
  return <QueryResult asked={asked} what="what it is compared with">{(before) => <Drawn {...props} before={before} />}</QueryResult>;
}

function Drawn(props: DifferenceProps & { before: FullTable }) {
  const { before, after, params, curve, versus, traces, when } = props;
  const found = useMemo(() => flameDifference(allocationsOf(before), allocationsOf(after)), [before, after]);
  const look = useMemo(() => lookOf(found), [found]);
  const { tree } = found;
  const [from, to] = [before, after].map((table) => table.totals["self_bytes"] ?? 0) as [number, number];
  if (tree.whole === 0) return <p class="muted">No allocation on {plain(curve.title)} differs: {bytesText(from)} then, {bytesText(to)} {when.words}.</p>;
  return (
    <>
      <FocusedIcicle
        tree={tree}
        params={params}
        title="Difference of allocated memory by what allocated it"
        look={look}
        describe={(node) => `${plain(tree.name[node] ?? "")}: ${told(found, node)}`}
        hits={null}
        summary={
          <span>
            <strong>{signedBytes(to - from)}</strong> {plain(curve.title)}, from {bytesText(from)} at {versusText(versus, traces)} to {bytesText(to)} {when.words}
          </span>
        }
        details={(node) => <Details found={found} node={node} />}
      />
      <p class="memory-scale muted">
        <i class="more" aria-hidden="true" /> holds more <i class="less" aria-hidden="true" /> holds less
        <span>
          A box is as wide as the larger of both; one that only one side has is hatched.
          {found.unchanged > 0 && ` ${bytesText(found.unchanged)} that did not change are left out.`}
        </span>
      </p>
    </>
  );
}

function lookOf(found: FlameDifference) {
  const { tree, kind, before, after, origin } = found;
  return {
    colour: (node: number) => {
      const by = changeOf(found, node);
      return by > 0 ? "slower" : by < 0 ? "faster" : "other";
    },
    strength: (node: number) => (changeOf(found, node) === 0 ? 0.2 : strengthOf(found, node)),
    hatched: (node: number) => (before[node] === 0) !== (after[node] === 0),
    linked: (node: number): Link => {
      if (kind[node] === "module" || origin[node] === "user") return "begins";
      return kind[node] === "frame" ? "continues" : "stands alone";
    },
    label: (box: Box) => {
      const by = changeOf(found, box.node);
      const name = plain(label(tree.name[box.node] ?? "", kind[box.node] ?? ""));
      const others = nodesOfBox(tree, box).length - 1;
      return `${name}${others > 0 ? `  +${others}` : ""}${by === 0 ? "" : `  ${signedBytes(by)}`}`;
    },
  };
}

function told({ before, after }: FlameDifference, node: number): string {
  const [from, to] = [before[node] ?? 0, after[node] ?? 0];
  return from === to ? `${bytesText(to)}, as before` : `${bytesText(from)} before, ${bytesText(to)} after, ${signedBytes(to - from)}`;
}

function Details(props: { found: FlameDifference; node: number }) {
  const { found, node } = props;
  const [file, line] = [found.file[node] ?? null, found.line[node] ?? null];
  const name = found.tree.name[node] ?? "";
  return (
    <p class="memory-node">
      <span class="mono" title={plain(name)}>{plain(name)}</span>
      <span>{told(found, node)}</span>
      {file !== null && line !== null && <a href={link("lines", { file, line: String(line) })}>source line</a>}
    </p>
  );
}
