// Details of a node of the tree.

import { plain } from "../../../parts/text/plain.ts";
import { number, textAt } from "../../../parts/data/full-table.ts";
import { link } from "../../../route.ts";
import { timeText } from "../../../units.ts";
import type { Deltas } from "./deltas.ts";
import { ALL, differenceOf, markOf } from "./deltas.ts";
import type { DifferenceProps } from "../difference.tsx";
import { countsText } from "./tree.tsx";
import { signed, signedShare } from "../tables/signed.ts";

interface DetailsProps extends DifferenceProps {
  deltas: Deltas;
  node: number;
  joined: number;
  focus: number;
  onFocus: (node: number) => void;
}

export function Details(props: DetailsProps) {
  const { deltas, node, joined, focus } = props;
  return (
    <footer class="compare-details">
      <div>
        {joined > 1
          ? <p class="muted">{joined} narrow nodes side by side; focus what is around them to see them.</p>
          : <Figures deltas={deltas} node={Math.max(node, ALL)} />}
      </div>
      <p class="compare-moves">
        {joined === 1 && node > ALL && <Links {...props} />}
        {focus > ALL && <button type="button" onClick={() => history.back()}>back</button>}
        {focus > ALL && <button type="button" onClick={() => props.onFocus(-1)}>show all</button>}
      </p>
    </footer>
  );
}

/** Name, total time, and self time with its interval. */
export function Figures(props: { deltas: Deltas; node: number }) {
  const { deltas, node } = props;
  const { table, sides } = deltas;
  const of = (name: string) => number(table, name, node);
  const [before, after] = [sides.before.total[node] ?? 0, sides.after.total[node] ?? 0];
  const mark = markOf(deltas, node);
  const [verdict, whole] = [textAt(table, "verdict", node), textAt(table, "total_verdict", node)];
  const calls = [of("calls_before"), of("calls_after")];
  const kind = textAt(table, "kind", node) ?? "";
  return (
    <>
      <p>
        <b class="mono">{plain(deltas.changes.name[node] ?? "")}</b>{" "}
        {node !== ALL && <span class="muted">{kind}</span>}{" "}
        {(mark === "new" || mark === "gone") && <span class={`compare-verdict-${mark}`}>{mark}</span>}
      </p>
      <p class="number compare-figures">
        {timeText(before)} → {timeText(after)}{" "}
        <b>{signed(differenceOf(deltas, node))}</b>{" "}
        {before > 0 && <span class="muted">{signedShare((after - before) / before)}</span>}{" "}
        {(whole === "slower" || whole === "faster") && <span class={`compare-verdict-${whole}`}>{whole}</span>}{" "}
        <span class="muted">with all within it</span>
      </p>
      {node !== ALL && (
        <p class="number compare-figures">
          {timeText(of("before") ?? 0)} → {timeText(of("after") ?? 0)}{" "}
          <b>{signed(of("difference") ?? 0)}</b>{" "}
          {(verdict === "slower" || verdict === "faster") && <span class={`compare-verdict-${verdict}`}>{verdict}</span>}{" "}
          <span class="muted">
            {interval(of("low"), of("high"))} its own
            {calls.every((count) => count !== null) && `; ${calls.map((count) => countsText(count ?? 0)).join(" → ")} calls`}
          </span>
        </p>
      )}
    </>
  );
}

function interval(low: number | null, high: number | null): string {
  return low === null || high === null ? "" : `(${signed(low)} to ${signed(high)}, 95 %)`;
}

/** The views that have a row for a node of this kind. */
const TABLES: Readonly<Record<string, string>> = { operator: "operators", annotation: "annotations" };

function Links(props: DetailsProps) {
  const { deltas, node, pair } = props;
  const table = TABLES[textAt(deltas.table, "kind", node) ?? ""];
  if (table === undefined) return null;
  const find = deltas.changes.name[node] ?? "";
  return (
    <span class="muted">
      in {table}: <a href={link(table, { find, trace: pair.before })}>before</a>, <a href={link(table, { find, trace: pair.after })}>after</a>
    </span>
  );
}
