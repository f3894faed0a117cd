// The process groups with their axes and ranks.

import type { Job, ProcessGroup } from "../../data/api.ts";
import { plain } from "../../parts/text/plain.ts";
import { countText } from "../../units.ts";
import { describedAs } from "./group-names.ts";
import { rankListText, consecutiveRanges } from "./rank-ranges.ts";

/** Groups of one axis that are shown at once; the others when they are asked for. */
const MOST = 16;

export function Groups(props: { job: Job }) {
  const { job } = props;
  if (job.groups.length === 0) return null;
  const last = Math.max(0, ...job.groups.flatMap((group) => group.ranks ?? []), (job.size ?? 1) - 1, ...job.ranks.map(({ rank }) => rank ?? 0));
  const axes = new Map<string, ProcessGroup[]>();
  for (const group of job.groups) {
    const axis = group.axis ?? "";
    axes.set(axis, [...(axes.get(axis) ?? []), group]);
  }
  return (
    <section aria-label="Process groups">
      <h2>Process groups</h2>
      <div class="job-wide">
        <table class="figures job-groups">
          <thead>
            <tr>
              <th scope="col">Axis</th><th scope="col">Group</th><th scope="col" class="number">Ranks</th>
              <th scope="col">Which, of {countText(last + 1)}</th>
            </tr>
          </thead>
          {[...axes].map(([axis, groups]) => <Axis key={axis} axis={axis} groups={groups} count={last + 1} />)}
        </table>
      </div>
    </section>
  );
}

function Axis(props: { axis: string; groups: readonly ProcessGroup[]; count: number }) {
  const { axis, groups, count } = props;
  const described = groups.slice(0, MOST).map((group) => ({ ...group, description: describedAs(group.description) }));
  return (
    <tbody>
      {described.map((group, at) => (
        <tr key={at}>
          <th scope="row">{at === 0 && (plain(axis) || <span class="muted">unknown</span>)}</th>
          <td>
            {plain(group.description ?? group.group ?? "-")}
            <span class="muted"> {plain([group.description === null ? null : group.group, group.backend].filter((word) => word !== null).join(" · "))}</span>
          </td>
          <td class="number">{group.size === null ? "-" : countText(group.size)}</td>
          <td><Strip ranks={group.ranks} count={count} /></td>
        </tr>
      ))}
      {groups.length > MOST && (
        <tr><th scope="row" /><td colSpan={3} class="muted">and {countText(groups.length - MOST)} more groups of this axis</td></tr>
      )}
    </tbody>
  );
}

/** Where in the job the ranks of a group stand. */
function Strip(props: { ranks: readonly number[] | null; count: number }) {
  const { ranks, count } = props;
  if (ranks === null) return <span class="muted">not all are written in the trace</span>;
  const words = rankListText(ranks, 8).replace(/^ranks? /, "");
  return (
    <span class="job-strip-line">
      <span class="job-strip" role="img" aria-label={rankListText(ranks)}>
        {consecutiveRanges(ranks).map(([from, to]) => (
          <i key={from} style={{ left: `${(100 * from) / count}%`, width: `max(2px, ${(100 * (to - from + 1)) / count}%)` }} />
        ))}
      </span>
      <span class="muted">{words}</span>
    </span>
  );
}
