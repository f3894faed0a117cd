// The list of traces: searched, in any order, each a link.

import "./trace-table.css";
import type { TraceInfo } from "../data/api.ts";
import { Find } from "../parts/controls/find.tsx";
import { plain } from "../parts/text/plain.ts";
import { change, formatRoute } from "../route.ts";
import { bytesText, countText } from "../units.ts";
import { dateText, parseSort, searchTraces, sortTraces, type SortColumn } from "./trace-rows.ts";

/** The name of the list in the address, where panels have theirs. */
export const TRACES = "traces";

/** More rows are found by searching. */
const MOST_SHOWN = 500;

interface Props {
  traces: readonly TraceInfo[];
  params: Readonly<Record<string, string>>;
  /** The panel that a trace opens; empty for the one that suits it. */
  panel: string;
}

export function TraceTable({ traces, params, panel }: Props) {
  const find = params["find"] ?? "";
  const found = sortTraces(searchTraces(traces, find), params["sort"]);
  const shown = found.slice(0, MOST_SHOWN);
  const columns = COLUMNS.filter(({ name, text }) =>
    name === "name" || (name === "run" ? new Set(traces.map(({ run }) => run)).size > 1 : traces.some((trace) => text(trace) !== "")),
  );
  const told = find === "" ? undefined : `${countText(found.length)} of ${countText(traces.length)}`;
  return (
    <div class="traces">
      <Find
        label="Search name, folder, device"
        value={find}
        told={told}
        onChange={(next) => change({ find: next === "" ? undefined : next })}
      />
      <div class="traces-rows">
        <table aria-label="Traces">
          <thead>
            <tr>{columns.map((column) => <Head key={column.name} {...column} sort={params["sort"]} />)}</tr>
          </thead>
          <tbody>
            {shown.map((trace) => (
              <tr key={trace.id}>
                {columns.map((column) => column.name === "name"
                  ? <th key="name" scope="row"><Name trace={trace} panel={panel} isShown={trace.id === params["trace"]} /></th>
                  : <Known key={column.name} text={column.text(trace)} number={column.number} />)}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {found.length === 0 && <p class="muted">No trace has “{plain(find)}” in its name, folder or device.</p>}
      {found.length > shown.length && (
        <p class="muted">{countText(found.length - shown.length)} more: search for a part of the name.</p>
      )}
    </div>
  );
}

interface Column {
  name: SortColumn;
  title: string;
  number: boolean;
  text: (trace: TraceInfo) => string;
}

const COLUMNS: readonly Column[] = [
  { name: "name", title: "Name", number: false, text: ({ name }) => plain(name) },
  { name: "run", title: "Folder", number: false, text: ({ run }) => plain(run) },
  { name: "device", title: "Device", number: false, text: ({ device }) => plain(device ?? "") },
  { name: "steps", title: "Steps", number: true, text: ({ steps }) => (steps === null ? "" : countText(steps)) },
  { name: "bytes", title: "Size", number: true, text: ({ bytes }) => (bytes === 0 ? "" : bytesText(bytes)) },
  { name: "modified", title: "Written", number: true, text: ({ modified }) => (modified === null ? "" : dateText(modified)) },
];

/** Columns of which the largest or latest is wanted first. */
const LARGEST_FIRST: ReadonlySet<SortColumn> = new Set(["steps", "bytes", "modified"]);

function Head(props: Column & { sort: string | undefined }) {
  const { name, title, number, sort } = props;
  const order = parseSort(sort);
  const isSorted = order?.column === name;
  const isDescending = isSorted ? !order.isDescending : LARGEST_FIRST.has(name);
  const direction = !isSorted ? undefined : order.isDescending ? "descending" : "ascending";
  return (
    <th scope="col" class={number ? "number" : undefined} aria-sort={direction}>
      <button type="button" class="quiet" onClick={() => change({ sort: `${isDescending ? "-" : ""}${name}` })}>
        {title}
        <span aria-hidden="true">{direction === undefined ? "" : direction === "ascending" ? " ↑" : " ↓"}</span>
      </button>
    </th>
  );
}

function Known(props: { text: string; number: boolean }) {
  const { text, number } = props;
  return <td class={[number && "number", text === "" && "unknown"].filter(Boolean).join(" ")}>{text || "–"}</td>;
}

function Name(props: { trace: TraceInfo; panel: string; isShown: boolean }) {
  const { trace, panel, isShown } = props;
  const href = formatRoute({ panel, params: { trace: trace.id } });
  const text = plain(trace.name);
  return <a href={href} title={text} aria-current={isShown ? "true" : undefined}>{text}</a>;
}
