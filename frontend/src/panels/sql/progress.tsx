// How long a query runs, and why it has no result.

import { useEffect, useState } from "preact/hooks";
import type { SqlPlace } from "../../data/sql.ts";
import { TraceText } from "../../parts/text/trace-text.tsx";

const TICK_MS = 200;
/** Time in ms for which no clock is shown. */
const QUIET_MS = 600;

export function Running(props: { since: number }) {
  const [now, set] = useState(props.since);
  useEffect(() => {
    const timer = setInterval(() => set(performance.now()), TICK_MS);
    return () => clearInterval(timer);
  }, []);
  const passed = now - props.since;
  return (
    <span class="sql-running muted" aria-busy="true">
      {passed > QUIET_MS && `running for ${(passed / 1000).toFixed(1)} s`}
    </span>
  );
}

export function Failure(props: {
  error: string;
  place: SqlPlace | null;
  /** Whether the query is still as it was when it failed. */
  isHere: boolean;
  onPlace: (place: SqlPlace) => void;
}) {
  const { error, place, isHere, onPlace } = props;
  return (
    <p class="sql-error" role="alert">
      <TraceText text={error.charAt(0).toUpperCase() + error.slice(1)} />.
      {place !== null && isHere && <button type="button" class="quiet" onClick={() => onPlace(place)}>Go there</button>}
    </p>
  );
}
