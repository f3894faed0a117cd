// The collectives that ranks wait in most, and the one that is chosen: who came when, and from what.

import { QueryResult, useQuery } from "../../../parts/data/asking.tsx";
import { loadTable, number, textAt } from "../../../parts/data/full-table.ts";
import type { FullTable } from "../../../parts/data/full-table.ts";
import { labelOfValue, labelsOf } from "../../../parts/data/labels.ts";
import { Choice } from "../../../parts/controls/choice.tsx";
import { plain } from "../../../parts/text/plain.ts";
import { change, link } from "../../../route.ts";
import { countText, text } from "../../../units.ts";
import type { JobProps } from "../index.tsx";
import { parseCell } from "../map/quantities.ts";
import { ArrivalChart } from "./arrivals.tsx";
import { moreText } from "./spread.ts";

/** Collectives that are listed; the table has all. */
const MOST = 8;

export function WaitsSection(props: JobProps) {
  const { data, trace, job, params } = props;
  const cell = parseCell(job, params["cell"]);
  const isOfStep = cell !== null && params["among"] !== "all";
  const where = isOfStep ? { where: [{ column: "step", op: "is" as const, value: String(cell.step) }] } : {};
  const ask = () => loadTable(data, trace.id, "collective_waits", {}, where, MOST);
  const asked = useQuery(ask, `${trace.id} ${isOfStep ? cell.step : ""}`);
  return (
    <section aria-label="Collective by collective">
      <div class="job-head">
        <h2>Collectives that ranks wait in most</h2>
        {cell !== null && (
          <Choice
            label="Of"
            value={isOfStep ? "step" : "all"}
            choices={[["step", `step ${cell.step}`], ["all", "all steps"]]}
            onChange={(value) => change({ among: value === "all" ? value : undefined })}
          />
        )}
      </div>
      <QueryResult asked={asked}>{(table) => <List {...props} table={table} />}</QueryResult>
    </section>
  );
}

function List(props: JobProps & { table: FullTable }) {
  const { data, table, params, job } = props;
  const chosen = /^\d{1,12}$/.test(params["collective"] ?? "") ? Number(params["collective"]) : null;
  const rows = [...Array(table.rows).keys()];
  const most = Math.max(1, ...rows.map((row) => number(table, "mean_wait", row) ?? 0));
  return (
    <>
      {rows.length === 0 && (
        <p class="muted">No collective is found on several ranks with clocks that are aligned: who waits for whom is unknown.</p>
      )}
      {rows.length > 0 && (
        <div class="job-wide">
          <table class="figures job-waits">
            <thead>
              <tr>
                <th scope="col">Collective</th>
                <th scope="col" class="number">Step</th>
                <th scope="col">The others wait</th>
                <th scope="col" class="number">On average</th>
                <th scope="col">For the last</th>
                <th scope="col">What it did before</th>
              </tr>
            </thead>
            <tbody>{rows.map((row) => <Row key={number(table, "number", row)} {...props} {...{ row, most, chosen }} />)}</tbody>
          </table>
        </div>
      )}
      <p class="job-legend">
        <span class="muted">{table.total > rows.length && `the ${MOST} with the longest waits${data.inline ? "" : `, of ${countText(table.total)}`}`}</span>
        <a href={link("view", { name: "collective_waits" })}>As a table</a>
      </p>
      {chosen !== null && <ArrivalChart {...props} job={job} chosen={chosen} />}
    </>
  );
}

function Row(props: JobProps & { table: FullTable; row: number; most: number; chosen: number | null }) {
  const { table, row, most, chosen, views } = props;
  const [id, step, wait] = ["number", "step", "mean_wait"].map((name) => number(table, name, row));
  const more = moreText(table, row, wait ?? 0, labelsOf(views.get("collective_waits"), "cause"));
  const longest = textAt(table, "longest", row);
  const spec = views.get("collective_waits");
  const isChosen = id === chosen;
  return (
    <tr data-chosen={isChosen}>
      <th scope="row">
        <button
          type="button"
          class="job-pick"
          aria-pressed={isChosen}
          onClick={() => change({ collective: isChosen ? undefined : String(id) }, { replace: false })}
        >
          {plain(textAt(table, "collective", row) ?? "collective")}
        </button>
        <span class="muted"> {plain(textAt(table, "group", row) ?? "")} of {text(number(table, "ranks", row), "count")}</span>
      </th>
      <td class="number">{step ?? "-"}</td>
      <td class="job-bar"><i style={{ width: `${(100 * (wait ?? 0)) / most}%`, background: "var(--idle)" }} /></td>
      <td class="number">{text(wait ?? null, "ns")}</td>
      <td>{plain(textAt(table, "label", row) ?? "")}</td>
      <td class="job-before">
        {more !== null
          ? `${more} than the others`
          : longest !== null
            ? `mostly ${labelOfValue(labelsOf(spec, "longest"), longest).text}`
            : <span class="muted">unknown</span>}
      </td>
    </tr>
  );
}
