// The rows of the profile of modules, operators and kernels, and their columns.

import { useMemo } from "preact/hooks";
import { cell, number, textAt } from "../../../parts/data/full-table.ts";
import { shareText, text, UNKNOWN } from "../../../units.ts";
import type { Head } from "../columns.ts";
import { PassShare } from "../passes.tsx";
import type { RowsProps } from "../tree-table.tsx";
import { TreeTable } from "../tree-table.tsx";
import type { Profile } from "./profile.ts";
import { achievedColour, figureWords, heads, knownShare, passes } from "./profile.ts";

export function Rows(props: RowsProps & { profile: Profile }) {
  const { profile } = props;
  const columns = useMemo(() => heads(profile), [profile]);
  return (
    <TreeTable
      {...props}
      id="profile"
      label="Profile of operators"
      of={profile}
      usual="-total_time"
      name={{ title: profile.byModule ? "Module" : "Kind of work", doc: "The name of the row." }}
      columns={columns}
      sortsShare
      share={(node) => <Share profile={profile} node={node} />}
      figure={(head, node) => <Figure key={head.name} head={head} profile={profile} node={node} />}
      classOf={(node) => KINDS[textAt(profile.table, "kind", node) ?? ""] ?? "derived"}
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

function Share({ profile, node }: { profile: Profile; node: number }) {
  const { total, whole } = profile.tree;
  const parts = passes(profile, node);
  const unknown = (total[node] ?? 0) - parts.reduce((sum, time) => sum + time, 0);
  return <PassShare passes={parts} unknown={unknown} whole={whole} share={number(profile.table, "share", node) ?? 0} />;
}
