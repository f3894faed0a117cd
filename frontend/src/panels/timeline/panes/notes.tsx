// What of the chosen ranks, the second trace and the queries is not shown, and why.

import { useEffect, useState } from "preact/hooks";
import { plain } from "../../../parts/text/plain.ts";
import type { QueryState } from "../../../parts/data/asking.tsx";
import { change, current, link } from "../../../route.ts";
import type { FailedQuery, Listed } from "../loading.ts";
import { titleOf, withoutQuery } from "../tracks/query-tracks.ts";

interface Props {
  /** Ranks that cannot be shown. */
  left: readonly string[];
  second: QueryState<Listed>;
  queries: QueryState<Listed & { failed: FailedQuery[] }>;
  isAsked: { second: boolean; queries: boolean; names: boolean };
  /** Whether no server answers. */
  isReport: boolean;
}

export function Notes({ left, second, queries, isAsked, isReport }: Props) {
  const failed = queries.state === "here" && !queries.stale ? queries.value.failed : [];
  const isBusy = (asked: QueryState<unknown>) => asked.state === "waiting" || (asked.state === "here" && asked.stale);
  return (
    <>
      {left.length > 0 && (
        <p class="muted timeline-left" role="note">Not shown, as their start times are unknown: {left.map(plain).join(", ")}.</p>
      )}
      {isReport && isAsked.names && (
        <p class="muted timeline-left" role="note">A report has the rows of streams by depth; <code>selftime serve</code> shows them by name.</p>
      )}
      {isAsked.second && isBusy(second) && <Busy what="the second trace" />}
      {isAsked.second && second.state === "failed" && (
        <p class="timeline-failed" role="note">
          <span>The second trace is not shown: {plain(second.error)}.</span>
          <button type="button" onClick={() => change({ beside: undefined, align: undefined })}>Close</button>
        </p>
      )}
      {isAsked.queries && isBusy(queries) && <Busy what="the results of queries" />}
      {failed.map((one) => <Failed key={one.query} {...one} isReport={isReport} />)}
    </>
  );
}

/** Delay in ms before it is said that something takes long. */
const SLOW_MS = 400;

function Busy({ what }: { what: string }) {
  const [isSlow, set] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => set(true), SLOW_MS);
    return () => clearTimeout(timer);
  }, []);
  return isSlow ? <p class="muted timeline-left" role="status">Reading {what} …</p> : null;
}

function Failed({ query, error, isReport }: FailedQuery & { isReport: boolean }) {
  const others = withoutQuery(current().params["track"], query);
  return (
    <p class="timeline-failed" role="note">
      <span><b>{plain(titleOf(query).slice(0, 80))}</b> is no track: {plain(error)}.</span>
      {!isReport && <a href={link("sql", { q: query, ...(others === undefined ? {} : { track: others }) })}>Edit the query</a>}
      <button type="button" onClick={() => change({ track: others })}>Close</button>
    </p>
  );
}
