// The difference flame graph: widths are the time of one recording, colours the difference.

import { useMemo } from "preact/hooks";
import { ROW } from "../../../draw/icicle.ts";
import type { Box } from "../../../draw/tree.ts";
import { Icicle } from "../../../parts/trees/icicle.tsx";
import { plain } from "../../../parts/text/plain.ts";
import { numbers, textAt } from "../../../parts/data/full-table.ts";
import { change } from "../../../route.ts";
import { timeText } from "../../../units.ts";
import type { PanelProps } from "../../panel.ts";
import type { Deltas, Mark, Side } from "./deltas.ts";
import { ALL, colourOf, depthOf, differenceOf, markOf, strengthOf } from "./deltas.ts";
import { Figures } from "./details.tsx";
import { signed } from "../tables/signed.ts";

interface FlameProps {
  deltas: Deltas;
  params: PanelProps["params"];
  focus: number;
  at: number;
  hits: ReadonlySet<number> | null;
  onHover: (box: Box | null) => void;
  onChoose: (node: number) => void;
  onFocus: (node: number) => void;
}

const MOST_ROWS = 16;
const SIGNS: Readonly<Record<Mark, string>> = { slower: "▲ ", faster: "▼ ", new: "new: ", gone: "gone: ", same: "" };

export function Flame(props: FlameProps) {
  const { params } = props;
  const widths = params["widths"];
  const sides: readonly Side[] = widths === "both" ? ["before", "after"] : [widths === "before" ? "before" : "after"];
  return (
    <>
      {sides.map((side) => <Drawn key={side} {...props} side={side} />)}
      <Legend deltas={props.deltas} />
    </>
  );
}

function Drawn(props: FlameProps & { side: Side }) {
  const { deltas, side, focus, at, hits } = props;
  const tree = deltas.sides[side];
  const look = useLook(deltas);
  const deepest = useMemo(() => depthOf(deltas, side), [deltas, side]);
  const whole = tree.total[focus < 0 ? ALL : focus] ?? 0;
  return (
    <figure class="compare-flame" data-side={side}>
      <figcaption>
        <span>As wide as <b>{side}</b>: {timeText(whole)} <span class="muted">{focus > ALL ? `in ${plain(tree.name[focus] ?? "")}` : "in all"}</span></span>
        <Elsewhere {...props} />
      </figcaption>
      {whole > 0
        ? (
          <Icicle
            {...look}
            height={Math.min(deepest, MOST_ROWS) * ROW}
            tree={tree}
            focus={focus}
            cursor={at}
            hits={hits}
            title={`Difference flame graph: widths are the time ${side}, colours what is slower or faster`}
            describe={(node) => described(deltas, node)}
            tip={(box) => (box.joined > 1 ? <p>{box.joined} narrow nodes side by side</p> : <Figures deltas={deltas} node={box.node} />)}
            onHover={props.onHover}
            onChoose={props.onChoose}
            onPress={props.onFocus}
            onFocus={props.onFocus}
          />
        )
        : <p class="muted compare-none">It takes no time {side}.</p>}
    </figure>
  );
}

/** A note on time that these widths do not show, and how to show it. */
function Elsewhere(props: FlameProps & { side: Side }) {
  const { deltas, side, params } = props;
  const lost: Mark = side === "after" ? "gone" : "new";
  const other: Side = side === "after" ? "before" : "after";
  const time = useMemo(() => {
    const own = numbers(deltas.table, other);
    return own.reduce((sum, much, node) => (textAt(deltas.table, "verdict", node) === lost ? sum + much : sum), 0);
  }, [deltas, lost]);
  if (time === 0 || params["widths"] === "both" || props.focus > ALL) return null;
  return (
    <button type="button" class="quiet" onClick={() => change({ widths: other === "after" ? undefined : other })}>
      what is {lost}, {timeText(time)}, shows by the widths {other}
    </button>
  );
}

function described(deltas: Deltas, node: number): string {
  const side = (name: Side) => timeText(deltas.sides[name].total[node] ?? 0);
  const mark = markOf(deltas, node);
  const said = mark === "same" ? "about the same" : `${mark}, ${signed(differenceOf(deltas, node))}`;
  return `${plain(deltas.changes.name[node] ?? "")}: ${side("before")} before, ${side("after")} after, ${said}`;
}

/** Colours and names; memoized, so that the tree is not laid out again. */
function useLook(deltas: Deltas) {
  return useMemo(() => ({
    colour: (node: number) => colourOf(deltas, node),
    strength: (node: number) => strengthOf(deltas, node),
    hatched: (node: number) => ["new", "gone"].includes(markOf(deltas, node)),
    label: ({ node }: Box) => {
      const mark = markOf(deltas, node);
      const name = plain(deltas.changes.name[node] ?? "");
      return mark === "same" ? name : `${SIGNS[mark]}${name}  ${signed(differenceOf(deltas, node))}`;
    },
  }), [deltas]);
}

function Legend(props: { deltas: Deltas }) {
  const { scale } = props.deltas;
  return (
    <p class="compare-scale">
      <span class="compare-faster">▼ faster</span>
      <span class="number muted">{scale > 0 ? signed(-scale) : ""}</span>
      <i class="compare-gradient" aria-hidden="true" />
      <span class="number muted">{scale > 0 ? signed(scale) : ""}</span>
      <span class="compare-slower">▲ slower</span>
      <i class="compare-hatch" aria-hidden="true" /> <span>new, gone</span>
      <span class="muted">Click or Enter to focus, Backspace and Home back, arrows to walk.</span>
    </p>
  );
}
