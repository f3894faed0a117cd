// Chooses the ranks to show in the timeline.

import type { Job } from "../../../data/api.ts";
import { QueryResult, useQuery } from "../../../parts/data/asking.tsx";
import { usePopover } from "../../../parts/controls/popover.ts";
import { plain } from "../../../parts/text/plain.ts";
import { change } from "../../../route.ts";
import { countText } from "../../../units.ts";
import type { PanelProps } from "../../panel.ts";
import { parseRankKeys, rankKeysText } from "../tracks/multi-rank.ts";
import { MOST_RANKS } from "../tracks/sources.ts";

/** Of more ranks the number is written, not ticked. */
const MOST_LISTED = 64;

export function RankChooser(props: PanelProps) {
  const { traces, trace, params } = props;
  const { open, show, holder } = usePopover<HTMLSpanElement>();
  if (traces.filter((known) => known.job === trace.job).length < 2) return null;
  const count = parseRankKeys(params["with"]).length;
  return (
    <span class="timeline-ranks" ref={holder}>
      <button type="button" aria-expanded={open} aria-pressed={count > 0} title="Show other ranks of the job below this one, on a common clock" onClick={() => show(!open)}>
        {count > 0 ? `Ranks: ${count + 1}` : "Ranks"}
      </button>
      {open && <Box {...props} />}
    </span>
  );
}

function Box(props: PanelProps) {
  const { data, trace } = props;
  const asked = useQuery(() => data.job(trace.id), trace.id);
  return (
    <div class="timeline-box timeline-rank-box" role="group" aria-label="Ranks below this one">
      <QueryResult asked={asked} what="the traces of all ranks">{(job) => <Ranks {...props} job={job} />}</QueryResult>
    </div>
  );
}

function Ranks(props: PanelProps & { job: Job }) {
  const { job, trace, params } = props;
  const chosen = parseRankKeys(params["with"]);
  const others = job.ranks.filter((rank) => !rank.traces.some((one) => one.trace === trace.id));
  const isFull = chosen.length >= MOST_RANKS - 1;
  const choose = (keys: readonly number[]) =>
    change({ with: rankKeysText(keys), fold: undefined, slice: undefined, area: undefined, pin: undefined, hide: undefined, order: undefined }, { replace: false });
  const turn = (key: number) => choose(chosen.includes(key) ? chosen.filter((known) => known !== key) : [...chosen, key]);
  if (others.length === 0) return <p class="muted">No other rank of this job is here.</p>;
  return (
    <>
      <p class="muted">{isFull ? `${MOST_RANKS} ranks are all that fit.` : "Below this rank, on a common clock:"}</p>
      {job.ranks.length > MOST_LISTED && (
        <label>
          numbers{" "}
          <input
            type="text"
            inputMode="numeric"
            placeholder="0, 5, 17"
            value={chosen.join(", ")}
            onChange={(event) => choose(parseRankKeys(event.currentTarget.value.replaceAll(/[,\s]+/g, ".")))}
          />
        </label>
      )}
      <ul>
        {others.slice(0, MOST_LISTED).map(({ key, label, residual }) => (
          <li key={key}>
            <label>
              <input type="checkbox" checked={chosen.includes(key)} disabled={isFull && !chosen.includes(key)} onChange={() => turn(key)} />{" "}
              {plain(label)} {residual === null && <span class="muted">clock not aligned</span>}
            </label>
          </li>
        ))}
      </ul>
      {others.length > MOST_LISTED && <p class="muted">and {countText(others.length - MOST_LISTED)} more, by number</p>}
      {chosen.length > 0 && <button type="button" onClick={() => choose([])}>This rank alone</button>}
    </>
  );
}
