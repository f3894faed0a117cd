// The rows of the profile of modules, operators and kernels, and their columns.

import { useMemo } from "preact/hooks";
import { cell, number, textAt } from "../../../parts/data/full-table.ts";
import { plain } from "../../../parts/text/plain.ts";
import { SortHead, TreeGrid } from "../../../parts/trees/treegrid.tsx";
import { parseNumbers, toggleNumber } from "../../../parts/trees/treerows.ts";
import { change } from "../../../route.ts";
import { shareText, text, timeText, UNKNOWN } from "../../../units.ts";
import type { PanelProps } from "../../panel.ts";
import type { Head } from "../tree-table.tsx";
import type { Profile } from "./profile.ts";
import { achievedColour, figureWords, heads, knownShare, PASSES, passes, shownRows } from "./profile.ts";

interface RowsProps {
  profile: Profile;
  params: PanelProps["params"];
  root: number;
  at: number;
  hits: ReadonlySet<number> | null;
  onChoose: (node: number) => void;
  onFocus: (node: number) => void;
}

export function Rows(props: RowsProps) {
  const { profile, params, root, at, hits } = props;
  const closed = parseNumbers(params["toggled"]);
  const sort = params["sort"] ?? "-total_time";
  const rows = useMemo(
    () => shownRows(profile, { root, at, hits, sort, toggled: closed }),
    [profile, root, at, hits, sort, params["toggled"]],
  );
  const columns = useMemo(() => heads(profile), [profile]);
  const sorting = { sort, onSort: (next: string) => change({ sort: next }) };
  return (
    <TreeGrid
      id="profile"
      label="Profile of operators"
      tree={profile.tree}
      rows={rows}
      root={root}
      at={at}
      hits={hits}
      columns={columns.length}
      head={
        <>
          <SortHead name="name" title={profile.byModule ? "Module" : "Kind of work"} doc="The name of the row." number={false} {...sorting} />
          <SortHead name="share" title="Share" doc="The row's share of all time." number={false} {...sorting} />
          {columns.map(({ name, title, doc }) => <SortHead key={name} name={name} title={title} doc={`${doc}.`} {...sorting} />)}
        </>
      }
      cells={(node) => (
        <>
          <Share profile={profile} node={node} />
          {columns.map((head) => <Figure key={head.name} head={head} profile={profile} node={node} />)}
        </>
      )}
      classOf={(node) => KINDS[textAt(profile.table, "kind", node) ?? ""] ?? "derived"}
      onToggle={(node) => change({ toggled: toggleNumber(closed, node), at: String(node) })}
      onChoose={props.onChoose}
      onFocus={props.onFocus}
    />
  );
}

/** Classes of rows by their kind; what is of no name in the program stands in italics. */
const KINDS: Readonly<Record<string, string | false>> = {
  module: "profile-module",
  category: "profile-module",
  operator: false,
  annotation: false,
  call: false,
  shape: "profile-inner",
  kernel: "profile-inner",
  outside: "outside",
  frame: "outside",
  unknown: "outside",
  other: "outside",
};

function Figure({ head, profile, node }: { head: Head; profile: Profile; node: number }) {
  if (head.name === "achieved_share") return <Achieved profile={profile} node={node} />;
  const value = cell(profile.table, head.name, node);
  if (head.name === "known_time") {
    const share = knownShare(profile, node);
    return <span role="gridcell" class="number muted" title={text(value, "ns")}>{share === 0 ? "none" : shareText(share)}</span>;
  }
  return <span role="gridcell" class="number" title={text(value, head.unit)}>{figureWords(value, head.unit)}</span>;
}

/** The achieved share with its colour; the colour says nothing that the number does not. */
function Achieved({ profile, node }: { profile: Profile; node: number }) {
  const share = number(profile.table, "achieved_share", node);
  const title = share === null
    ? "unknown: nothing within it has a model and a known peak"
    : `of the ${shareText(knownShare(profile, node))} of the time of which it is known`;
  return (
    <span role="gridcell" class="number achieved" title={title}>
      <i style={{ background: `var(--${achievedColour(share)})` }} aria-hidden="true" />
      {share === null ? UNKNOWN : shareText(share)}
    </span>
  );
}

/** A bar with the row's share by pass: forward, backward, recomputation. */
function Share({ profile, node }: { profile: Profile; node: number }) {
  const { whole } = profile.tree;
  const parts = passes(profile, node);
  const total = profile.tree.total[node] ?? 0;
  const rest = total - parts.reduce((sum, time) => sum + time, 0);
  const width = (time: number) => `${whole > 0 ? (100 * time) / whole : 0}%`;
  const title = PASSES.map((pass, at) => `${pass} ${timeText(parts[at] ?? 0)}`).join(", ");
  return (
    <span role="gridcell" class="tree-share" title={plain(title)}>
      <span class="tree-bar" aria-hidden="true">
        {PASSES.map((pass, at) => <i key={pass} class={`pass-${pass}`} style={{ width: width(parts[at] ?? 0) }} />)}
        {rest > 0 && <i class="pass-unknown" style={{ width: width(rest) }} />}
      </span>
      <span class="number">{shareText(number(profile.table, "share", node) ?? 0)}</span>
    </span>
  );
}
