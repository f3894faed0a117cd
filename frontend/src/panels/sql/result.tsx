// The result of a query as the page's table, or as a chart of two of its columns.

import { useMemo } from "preact/hooks";
import type { ViewSpec } from "../../data/api.ts";
import type { SqlResult } from "../../data/sql.ts";
import { Choice } from "../../parts/controls/choice.tsx";
import { download } from "../../parts/controls/download.ts";
import { Find } from "../../parts/controls/find.tsx";
import { Empty } from "../../parts/data/asking.tsx";
import { change, go } from "../../route.ts";
import { grouped } from "../../units.ts";
import { Chooser } from "../grid/layout/chooser.tsx";
import { placeColumns } from "../grid/layout/columns.ts";
import { csvOf } from "../grid/query/csv.ts";
import { FilterChips } from "../grid/query/filter.tsx";
import type { GridState } from "../grid/query/state.ts";
import { queryOf, readState, stateParameters } from "../grid/query/state.ts";
import { Sheet } from "../grid/sheet.tsx";
import { ResultChart } from "./chart.tsx";
import { type ChartChoice, type ChartKind, isDrawable, readChart, writtenChart } from "./charts.ts";
import { isTrack, withQuery } from "../timeline/tracks/query-tracks.ts";
import { RowDetails } from "./row-details.tsx";
import { numberWidths, pageOf, readable, useResultRows } from "./rows.ts";

interface Props {
  result: SqlResult;
  params: Readonly<Record<string, string>>;
  isStale: boolean;
}

/** What the address is read by; a result has no options. */
function specOf({ columns }: SqlResult): ViewSpec {
  return { name: "sql", title: "", doc: "", needs: [], across: false, options: [], columns };
}

export function Result(props: Props) {
  const { params, isStale } = props;
  const result = useMemo(() => readable(props.result), [props.result]);
  const spec = useMemo(() => specOf(result), [result]);
  const state = useMemo(() => readState(params, spec), [params, spec]);
  const query = useMemo(() => queryOf(state, spec.columns), [state, spec]);
  const chart = readChart(params["chart"], result.columns);
  const names = result.columns.map((column) => column.name);
  const shown = state.columns ?? names;
  const onChange = (part: Partial<GridState>) => change(stateParameters(part, spec));
  const draw = (choice: ChartChoice | null) => change({ chart: choice === null ? undefined : writtenChart(choice) });
  if (result.row_count === 0) {
    return <Empty title="No rows" text="The query was answered, and nothing in this trace is like that." />;
  }
  return (
    <div class="sql-result" data-stale={isStale} aria-busy={isStale}>
      <div class="sql-tools">
        <Views chart={chart} result={result} onDraw={draw} />
        <Find label="Search" value={state.find} onChange={(find) => onChange({ find, row: null })} />
        <FilterChips filters={state.where} onChange={(where) => onChange({ where, row: null })} />
        <span class="sql-counted muted" role="status">{countedText(result)}</span>
        {chart === null && (
          <Chooser columns={result.columns} withValues={names} shown={shown} onChange={(columns) => onChange({ columns })} />
        )}
        {isTrack(result.columns) && (
          <button type="button" title="Show the rows on the timeline: by start and duration, or as a counter by start and value" onClick={() => go("timeline", { track: withQuery(params["track"], params["q"] ?? "") ?? "" })}>
            Show as a track
          </button>
        )}
        <button type="button" data-csv title="The rows that are here, as CSV" onClick={() => save(props.result)}>CSV</button>
      </div>
      {chart === null
        ? <Table result={result} state={state} shown={shown} query={query} onChange={onChange} />
        : <ResultChart chart={chart} columns={result.columns} page={pageOf(result, query)} onDraw={draw} />}
    </div>
  );
}

function save({ columns, page }: SqlResult): void {
  download("query.csv", "text/csv", csvOf(columns, [page]));
}

function countedText({ row_count: count, page, seconds }: SqlResult): string {
  const rows = `${grouped(String(count))} ${count === 1 ? "row" : "rows"}`;
  const all = page.rows < count ? `the first ${grouped(String(page.rows))} of ${rows}` : rows;
  return `${all} in ${seconds < 10 ? seconds.toFixed(2) : seconds.toFixed(1)} s`;
}

const KINDS: readonly (readonly [ChartKind | "table", string])[] = [
  ["table", "Table"], ["bar", "Bars"], ["line", "Line"], ["scatter", "Points"],
];

function Views(props: { chart: ChartChoice | null; result: SqlResult; onDraw: (chart: ChartChoice | null) => void }) {
  const { chart, result, onDraw } = props;
  if (!result.columns.some(isDrawable)) return null;
  const choose = (kind: ChartKind | "table") => {
    if (kind === "table") onDraw(null);
    else onDraw(chart === null ? readChart(kind, result.columns) : { ...chart, kind });
  };
  return <Choice label="Show" value={chart?.kind ?? "table"} choices={KINDS} onChange={choose} />;
}

interface TableProps {
  result: SqlResult;
  state: GridState;
  shown: readonly string[];
  query: ReturnType<typeof queryOf>;
  onChange: (part: Partial<GridState>) => void;
}

function Table({ result, state, shown, query, onChange }: TableProps) {
  const asking = useResultRows(result, query);
  const columns = useMemo(
    () => {
      const widths = { ...numberWidths(result), ...state.widths };
      const placed = placeColumns(result.columns, shown, widths, result.page, innerWidth);
      return placed.map((column) => ({ ...column, label: column.name }));
    },
    [result, shown.join(), JSON.stringify(state.widths)],
  );
  const found = state.row === null ? null : asking.rows.find(state.row);
  if (asking.rows.head !== null && asking.rows.total === 0) {
    return (
      <Empty title="No row matches" text="Search and filters leave none.">
        <button type="button" onClick={() => onChange({ find: "", where: [], row: null })}>Show all rows</button>
      </Empty>
    );
  }
  return (
    <div class="grid-main">
      <Sheet title="Result" asking={asking} columns={columns} state={state} onChange={onChange} />
      {found !== null && <RowDetails found={found} columns={result.columns} onClose={() => onChange({ row: null })} />}
    </div>
  );
}
