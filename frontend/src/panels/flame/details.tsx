// Details of a node, with links to other panels.

import { download } from "../../parts/controls/download.ts";
import { plain } from "../../parts/text/plain.ts";
import { link } from "../../route.ts";
import { countText, shareText, timeText } from "../../units.ts";
import type { PanelProps } from "../panel.ts";
import { arrangementOf, sandwichOf } from "./arrangement.ts";
import type { Frames, NodeFacts } from "./frames.ts";
import { COLOURS, foldedStacks, label, nodeFacts } from "./frames.ts";

export interface DetailsProps extends PanelProps {
  frames: Frames;
  node: number;
  joined: number;
  /** The nodes that it is drawn with, the outermost first. */
  chain: readonly number[];
  focus: number;
  onFocus: (node: number) => void;
}

export function Details(props: DetailsProps) {
  const { frames, node, joined, focus, trace } = props;
  const others = props.chain
    .filter((other) => other !== node)
    .map((other) => plain(label(frames.tree.name[other] ?? "", frames.kind[other] ?? "")));
  const save = () => download(`${trace.name}.folded`, "text/plain", foldedStacks(frames));
  return (
    <footer class="flame-details">
      <div class="flame-node">
        {node < 0 && <Legend frames={frames} />}
        {node >= 0 && joined > 1 && <p class="muted">{joined} narrow nodes side by side; focus what is around them to see them.</p>}
        {node >= 0 && joined <= 1 && <Node told={nodeFacts(frames, node, focus)} others={others} {...props} />}
      </div>
      <div class="flame-moves">
        {focus >= 0 && <button type="button" onClick={() => history.back()}>back</button>}
        {focus >= 0 && <button type="button" onClick={() => props.onFocus(-1)}>show all</button>}
        <button type="button" title="For other flame graph programs" onClick={save}>folded stacks</button>
      </div>
    </footer>
  );
}

function Node(props: PanelProps & { told: NodeFacts; frames: Frames; others: readonly string[] }) {
  const { told: of, frames } = props;
  return (
    <>
      <p class="flame-name">
        <Swatch kind={of.kind} /> <span class="mono" title={plain(of.name)}>{plain(of.name)}</span>
        {props.others.length > 0 && <span class="muted flame-chain">drawn with {props.others.join(", ")}</span>}
      </p>
      <p class="flame-figures">
        <span>{timeText(of.total)} <span class="muted">{timeWords(of, frames)}</span></span>
        {frames.direction === "callees" && <span>{timeText(of.self)} <span class="muted">self</span></span>}
        <span>{shareText(of.share)} <span class="muted">of all</span></span>
        {of.shareOfFocus !== null && of.shareOfFocus < 1 && (
          <span>{shareText(of.shareOfFocus)} <span class="muted">of the focus</span></span>
        )}
        <span>{countText(of.count)} <span class="muted">{of.count === 1 ? "run" : "runs"}</span></span>
        {of.count > 1 && <span>{timeText(of.total / of.count)} <span class="muted">each</span></span>}
        <Links {...props} />
      </p>
    </>
  );
}

/** What the time of a node is; below a root of callers it is the part of the root's. */
function timeWords(of: NodeFacts, { direction, metric }: Frames): string {
  const time = direction === "callers of self time" ? `${metric} self time` : `${metric} time`;
  if (direction === "callees" || of.isRoot) return time;
  const root = plain(of.root);
  return `${time} of ${root.length > 60 ? `${root.slice(0, 60)}…` : root}, called through it`;
}

/** The views that have a row for a node of this kind. */
const TABLES: Readonly<Record<string, readonly [view: string, text: string]>> = {
  operator: ["operators", "in operators"],
  annotation: ["annotations", "in annotations"],
  kernel: ["kernels", "in kernels"],
  copy: ["copies", "in copies"],
  module: ["modules", "in modules"],
};

function Links(props: PanelProps & { told: NodeFacts }) {
  const { told: of, views, params } = props;
  const table = TABLES[of.kind];
  const find = of.kind === "module" ? of.name.replace(/^nn\.Module: /, "") : of.name;
  const sandwich = Object.entries({ ...params, ...sandwichOf(params, of.name, of.kind) })
    .filter((one): one is [string, string] => one[1] !== undefined && one[0] !== "trace");
  const isShown = arrangementOf(params) === "sandwich" && params["of"] === of.name;
  return (
    <>
      {of.name !== "(other)" && !isShown && (
        <a href={link("flame", Object.fromEntries(sandwich))}>callers and callees</a>
      )}
      {of.file !== null && of.line !== null && (
        <a href={link("lines", { file: of.file, line: String(of.line) })}>source line</a>
      )}
      {table && of.kind !== "copy" && <a href={link(table[0], { find })}>{table[1]}</a>}
      {of.kind === "copy" && <a href={link("copies")}>in copies</a>}
      {views.has("occurrences") && of.name !== "(other)" && (
        <a href={link("occurrences", { name: of.name })}>occurrences in the timeline</a>
      )}
    </>
  );
}

export function Swatch(props: { kind: string }) {
  return (
    <span class="flame-kind">
      <i style={{ background: `var(--${COLOURS[props.kind] ?? "other"})` }} />{props.kind}
    </span>
  );
}

function Legend(props: { frames: Frames }) {
  const kinds = Object.keys(COLOURS).filter((kind) => props.frames.kind.includes(kind));
  return (
    <p class="flame-legend">
      {kinds.map((kind) => <Swatch key={kind} kind={kind} />)}
      <span class="muted">Hover for figures, click to focus, arrows to walk.</span>
    </p>
  );
}
