// The table of a view with its controls; its complete state is in the URL.

import type { ComponentChildren } from "preact";
import { useCallback, useMemo, useRef } from "preact/hooks";
import type { Options, Page, ViewSpec } from "../../data/api.ts";
import { useSize } from "../../parts/charts/sized.ts";
import { Empty, Waiting } from "../../parts/data/asking.tsx";
import { MissingData } from "../../parts/text/missing-data.tsx";
import { plain } from "../../parts/text/plain.ts";
import { change } from "../../route.ts";
import type { PanelProps } from "../panel.ts";
import type { RowsQuery } from "./query/asking.ts";
import { useRows, useSample } from "./query/asking.ts";
import { labelOf, mainColumns, placeColumns } from "./layout/columns.ts";
import { useRememberedColumns } from "./layout/remembered.ts";
import { Drawer } from "./drawer/drawer.tsx";
import { Sheet } from "./sheet.tsx";
import type { GridState } from "./query/state.ts";
import { filtersOfKind, KIND, shownKind } from "./query/kinds.tsx";
import { queryOf, readState, stateParameters } from "./query/state.ts";
import { Tools } from "./tools.tsx";

export interface GridProps extends PanelProps {
  view: string;
  /** The heading; empty if there is another one above. */
  title?: string;
  /** Default options of the panel. */
  defaults?: Options;
  /** URL parameters that the panel uses itself. */
  taken?: readonly string[];
  /** The kind of rows that the panel shows unless the address asks for others. */
  kind?: string | undefined;
}

const NONE: readonly string[] = [];

export function Grid(props: GridProps) {
  const spec = props.views.get(props.view);
  if (spec === undefined) {
    return <Empty title={`There is no view “${plain(props.view)}”`} text="This version of selftime does not have it." />;
  }
  return <Known key={spec.name} {...props} title={props.title ?? labelOf(spec.name)} spec={spec} />;
}

function Known(props: GridProps & { title: string; spec: ViewSpec }) {
  const { data, trace, params, spec, defaults, taken = NONE } = props;
  const place = useRef<HTMLElement>(null);
  const { width } = useSize(place);
  const state = useMemo(() => readState(params, spec, taken, defaults), [params, spec, taken, defaults]);
  const options = useMemo(() => ({ ...defaults, ...state.options }), [defaults, state]);
  const kind = shownKind(params[KIND], state, props.kind);
  const query = useMemo(() => queryOf(state, spec.columns, filtersOfKind(kind)), [state, spec, kind]);
  const asking = useRows(data, trace.id, spec.name, options, query);
  const { head } = asking.rows;
  const isNarrowed = state.find !== "" || state.where.length > 0;
  const sample = useSample(JSON.stringify([trace.id, options, kind]), head, isNarrowed);
  const [remembered, remember] = useRememberedColumns(spec);
  const sorted = state.sort.replace(/^-/, "");
  const offered = useMemo(() => spec.columns.filter((column) => kind === null || column.name !== KIND), [spec, kind]);
  const shown = useMemo(
    () => state.columns ?? remembered ?? mainColumns(offered, sample, [sorted, ...state.where.map((one) => one.column)]),
    [state.columns, remembered, offered, sample, sorted, state.where],
  );
  const columns = useMemo(
    () => placeColumns(spec.columns, shown, state.widths, sample, width || undefined),
    [spec, shown.join(), JSON.stringify(state.widths), sample, width],
  );
  const onChange = useCallback(
    (part: Partial<GridState>) => change(stateParameters(part, spec, taken, defaults), { replace: part.row === undefined || part.find !== undefined }),
    [spec, taken, defaults],
  );
  const found = state.row === null ? null : asking.rows.find(state.row);
  return (
    <section ref={place} class="grid-panel">
      <Tools {...props} kind={kind} hasKinds={props.kind !== undefined} options={options} query={query} state={state} page={head} sample={sample} shown={shown} onColumns={remember} onChange={onChange} />
      <Body asking={asking} state={state} onChange={onChange}>
        <div class="grid-main">
          <Sheet title={props.title} asking={asking} columns={columns} state={state} onChange={onChange} />
          {found !== null && state.row !== null && (
            <Drawer
              {...props}
              found={found}
              row={state.row}
              total={asking.rows.total}
              options={options}
              onRow={(row) => onChange({ row })}
            />
          )}
        </div>
      </Body>
    </section>
  );
}

interface BodyProps {
  asking: RowsQuery;
  state: GridState;
  onChange: (part: Partial<GridState>) => void;
  children: ComponentChildren;
}

/** The table, or why there is none. */
function Body(props: BodyProps) {
  const { asking } = props;
  const { head, error } = asking.rows;
  if (error !== null) {
    return (
      <Empty title="This table cannot be shown" text={plain(error.message)}>
        <button type="button" onClick={asking.again}>Try again</button>
      </Empty>
    );
  }
  if (head === null) return <Waiting />;
  if (head.total === 0) return <Nothing {...props} page={head} />;
  return <>{props.children}</>;
}

function Nothing(props: BodyProps & { page: Page }) {
  const { page, onChange } = props;
  if (page.all > 0) {
    return (
      <Empty title="No row matches" text={`The table has ${page.all.toLocaleString("en")} rows; search and filters leave none.`}>
        <button type="button" onClick={() => onChange({ find: "", where: [], row: null })}>Show all rows</button>
      </Empty>
    );
  }
  if (page.lacks.length > 0) return <MissingData title="This recording does not hold what the table needs" lacks={page.lacks} />;
  return <Empty title="There is nothing to list" text="The recording holds the data that this table needs, but it has no rows." />;
}
