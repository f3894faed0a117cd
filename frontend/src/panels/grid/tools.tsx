// The controls above a table: title, search, options, filters and row count.

import { useState } from "preact/hooks";
import type { Data, Options, Page, Query, TraceInfo, ViewSpec } from "../../data/api.ts";
import { download } from "../../parts/controls/download.ts";
import { Find } from "../../parts/controls/find.tsx";
import { MissingDataNote } from "../../parts/text/missing-data.tsx";
import { TraceText } from "../../parts/text/trace-text.tsx";
import { countText, grouped } from "../../units.ts";
import { Chooser } from "./layout/chooser.tsx";
import { columnsWithValues } from "./layout/columns.ts";
import { csvOf } from "./query/csv.ts";
import { FilterChips } from "./query/filter.tsx";
import { Kinds } from "./query/kinds.tsx";
import { PressedOptions, TypedOptions } from "./query/options.tsx";
import type { GridState } from "./query/state.ts";
import { MOST_ROWS } from "./layout/virtual.ts";

interface ToolsProps {
  title: string;
  spec: ViewSpec;
  trace: TraceInfo;
  data: Data;
  options: Options;
  query: Query;
  state: GridState;
  page: Page | null;
  /** A page without search and filters, which shows which columns have values. */
  sample: Page | null;
  shown: readonly string[];
  /** The shown kind of rows, if the panel tells kinds apart; null for all. */
  kind: string | null;
  hasKinds: boolean;
  /** Remembers the chosen columns; null forgets them. */
  onColumns: (names: readonly string[] | null) => void;
  onChange: (part: Partial<GridState>) => void;
}

export function Tools(props: ToolsProps) {
  const { spec, state, page, shown, onChange } = props;
  const onOptions = (options: Options) => onChange({ options, row: null });
  return (
    <header class="grid-tools">
      <div class="grid-title">
        {props.title && <h1>{props.title}</h1>}
        <About spec={spec} />
        <span class="grid-right">
          <TypedOptions specs={spec.options} values={props.options} onChange={onOptions} />
          <Chooser
            columns={spec.columns}
            withValues={columnsWithValues(spec.columns, props.sample)}
            shown={shown}
            onChange={(columns) => {
              props.onColumns(columns);
              onChange({ columns });
            }}
          />
          <CsvLink {...props} />
        </span>
      </div>
      <div class="grid-asked">
        <Find label="Search" value={state.find} onChange={(find) => onChange({ find, row: null })} />
        {props.hasKinds && <Kinds data={props.data} trace={props.trace.id} view={spec.name} options={props.options} kind={props.kind} />}
        <PressedOptions specs={spec.options} values={props.options} onChange={onOptions} />
        <FilterChips filters={state.where} onChange={(where) => onChange({ where, row: null })} />
        {page && <Counted page={page} />}
      </div>
      {page && page.all > 0 && <MissingDataNote lacks={page.lacks} />}
    </header>
  );
}

/** The view in one sentence; the rest of what is to be said of it on demand. */
function About(props: { spec: ViewSpec }) {
  const [isOpen, open] = useState(false);
  const [title = "", ...rest] = props.spec.doc.split("\n\n");
  const first = title.replaceAll("\n", " ");
  return (
    <div class="grid-about">
      <span class="muted"><TraceText text={first} /></span>
      {rest.length > 0 && (
        <button type="button" class="quiet" aria-expanded={isOpen} onClick={() => open(!isOpen)}>
          {isOpen ? "Less" : "More"}
        </button>
      )}
      {isOpen && rest.map((part) => <p key={part}><TraceText text={part.replaceAll("\n", " ")} /></p>)}
    </div>
  );
}

export function countedWords(page: Pick<Page, "all" | "total" | "held">): string {
  const rows = page.all === 1 ? "row" : "rows";
  const whole = `${grouped(String(page.all))} ${rows}`;
  const all = page.held === undefined ? whole : `the first ${grouped(String(page.held))} of ${whole}`;
  if (page.total === (page.held ?? page.all)) return all;
  return `${grouped(String(page.total))} of ${all} ${page.total === 1 ? "matches" : "match"}`;
}

function Counted(props: { page: Page }) {
  const { total, held } = props.page;
  return (
    <span class="grid-counted" role="status">
      {countedWords(props.page)}
      {held !== undefined && <span class="muted">; all with <code>selftime serve</code></span>}
      {total > MOST_ROWS && (
        <span class="muted">; the first {countText(MOST_ROWS)} are shown: sort or filter to see others</span>
      )}
    </span>
  );
}

function CsvLink(props: ToolsProps) {
  const { data, trace, spec, options, query } = props;
  const [problem, setProblem] = useState("");
  const address = data.csv(trace.id, spec.name, options, query);
  const title = "All rows that match, as CSV";
  if (address !== null) {
    return <a class="grid-button" data-csv href={address} download={`${spec.name}.csv`} title={title}>CSV</a>;
  }
  const save = async () => {
    try {
      const page = await data.page(trace.id, spec.name, options, query);
      download(`${spec.name}.csv`, "text/csv", csvOf(spec.columns, [page]));
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error));
    }
  };
  return (
    <button type="button" data-csv title={title} onClick={() => void save()}>
      CSV{problem && <span role="alert">: {problem}</span>}
    </button>
  );
}
