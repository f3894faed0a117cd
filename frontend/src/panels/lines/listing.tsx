// The source file with the cost of each line, or only the lines with a cost.

import { useEffect, useMemo, useRef } from "preact/hooks";
import type { Data, Source } from "../../data/api.ts";
import { QueryResult, useQuery } from "../../parts/data/asking.tsx";
import { labelOfValue, labelsOf } from "../../parts/data/labels.ts";
import type { Labels } from "../../parts/data/labels.ts";
import { plain } from "../../parts/text/plain.ts";
import { Coloured } from "../../parts/code/source.tsx";
import { useSize } from "../../parts/charts/sized.ts";
import { useVisibleRange } from "../../parts/controls/window.ts";
import { change } from "../../route.ts";
import { timeText } from "../../units.ts";
import type { PanelProps } from "../panel.ts";
import type { Costs, FileCost } from "./costs.ts";
import { heat, howMark } from "./costs.ts";
import type { Row } from "./rows.ts";
import { rowsOf } from "./rows.ts";
import { isCell } from "../../parts/text/place.ts";

const HEIGHT = 20;
/** Lines of a file up to which it is shown completely. */
const MOST_LINES = 20_000;

interface ListingProps extends PanelProps {
  file: string;
  line: number | null;
  costs: Costs;
  of: FileCost | undefined;
  only: boolean;
}

/** Puts the chosen line into the URL. */
export function chooseLine(place: { file: string; line: number | null }): void {
  change({ file: place.file, line: place.line === null ? undefined : String(place.line) });
}

export function Listing(props: ListingProps) {
  const { data, trace, file } = props;
  const asked = useQuery(() => inParts(data, trace.id, file), `${trace.id} ${file}`);
  return <QueryResult asked={asked} what="the file">{(parts) => <Rows {...props} parts={parts} />}</QueryResult>;
}

/** The available parts of the file; a report has only lines around costs. */
async function inParts(data: Data, trace: string, file: string): Promise<Source[]> {
  const parts: Source[] = [];
  for (let from = 1; ; ) {
    const part = await data.source(trace, file, from, MOST_LINES);
    if (part === null || part.lines.length === 0) return parts;
    parts.push(part);
    from = part.from + part.lines.length;
    if (from > part.count) return parts;
  }
}

function Rows(props: ListingProps & { parts: readonly Source[] }) {
  const { of, parts, only, line, costs, file, views } = props;
  const labels = labelsOf(views.get("lines"), "how");
  const rows = useMemo(() => rowsOf(of?.costs ?? [], parts, only), [of, parts, only]);
  const place = useRef<HTMLDivElement>(null);
  const sight = useVisibleRange(place, rows.length, HEIGHT);
  const { height } = useSize(place);
  const at = rows.findIndex((row) => row.line === line);
  useEffect(() => {
    const shown = place.current;
    if (shown === null || at < 0) return;
    const y = at * HEIGHT;
    const isOut = y < shown.scrollTop + HEIGHT || y > shown.scrollTop + height - 4 * HEIGHT;
    if (isOut) shown.scrollTop = Math.max(y - height / 3, 0);
  }, [at, rows, height]);
  const moved = (event: KeyboardEvent) => {
    const by = { ArrowDown: 1, ArrowUp: -1, PageDown: 20, PageUp: -20 }[event.key];
    if (by === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    const next = rows[Math.min(Math.max(at + by, 0), rows.length - 1)];
    if (next !== undefined) chooseLine({ file, line: next.line });
  };
  const most = costs.ranked.reduce((all, cost) => Math.max(all, costs.hasDevice ? cost.device : 0, cost.host - cost.waits), 1);
  return (
    <>
      {parts.length === 0 && <Absent file={file} />}
      <div
        ref={place}
        class={`listing${costs.hasDevice ? " two" : ""}${parts.length === 0 ? " costs-only" : ""}`}
        role="grid"
        tabIndex={0}
        aria-label={`${plain(file)} with its costs`}
        aria-rowcount={rows.length}
        onKeyDown={moved}
      >
        <Head costs={costs} text={parts.length === 0 ? "Function" : ""} />
        <div style={{ height: `${sight.from * HEIGHT}px` }} />
        {rows.slice(sight.from, sight.to).map((row, index) => (
          <OneRow key={sight.from + index} row={row} chosen={sight.from + index === at} file={file} costs={costs} labels={labels} most={most} />
        ))}
        <div style={{ height: `${(rows.length - sight.to) * HEIGHT}px` }} />
      </div>
    </>
  );
}

function Absent(props: { file: string }) {
  const reason = isCell(props.file)
    ? "The text of the cell was not recorded: these are its lines with a cost."
    : props.file.endsWith(".py")
    ? "The source file is not available: these are its lines with a cost."
    : "No Python file: these are the places in it with a cost.";
  return <p class="lines-absent muted" role="note">{reason}</p>;
}

function Head(props: { costs: Costs; text: string }) {
  return (
    <div class="listing-row listing-head" role="row">
      {props.costs.hasDevice && <span role="columnheader" class="number" title="Device time that the line launched itself">Device</span>}
      <span role="columnheader" class="number" title="Host time in the line itself, in no line it called; waits left out">Host</span>
      <span role="columnheader" class="number" title="Time with that of what it called: of the device, or else of the host">With calls</span>
      <span role="columnheader" title="How the line is known">Known</span>
      <span role="columnheader" class="number">Line</span>
      <span role="columnheader" class="listing-text">{props.text}</span>
    </div>
  );
}

interface RowProps {
  row: Row;
  chosen: boolean;
  file: string;
  costs: Costs;
  labels: Labels;
  most: number;
}

function OneRow(props: RowProps) {
  const { row, chosen, file, costs, labels, most } = props;
  const { cost } = row;
  const total = cost && (costs.metric === "device" ? cost.totalDevice : cost.totalHost);
  return (
    <div
      class={`listing-row${chosen ? " chosen" : ""}${cost ? " costs" : ""}`}
      role="row"
      aria-selected={chosen}
      onClick={() => chooseLine({ file, line: row.line })}
    >
      {costs.hasDevice && <Bar kind="device" time={cost?.device} most={most} />}
      <Bar kind="host" time={cost && heat(cost, "host")} most={most} />
      <span role="gridcell" class="number muted">{total ? timeText(total) : ""}</span>
      <span role="gridcell" class="listing-how muted" title={cost?.how.map((how) => labelOfValue(labels, how).doc).join(" ")}>{cost && howMark(cost.how, labels)}</span>
      <span role="rowheader" class="number listing-line">{row.line ?? (row.cost === undefined ? "" : "?")}</span>
      <code role="gridcell">
        {row.tokens === null ? <span class="muted">{told(row)}</span> : <Coloured tokens={row.tokens} />}
      </code>
    </div>
  );
}

function told(row: Row): string {
  if (row.cost === undefined) return "…";
  const name = row.cost?.function ? plain(row.cost.function) : "";
  return row.line === null ? `${name} (unknown line)` : name;
}

function Bar(props: { kind: "device" | "host"; time: number | undefined; most: number }) {
  const { kind, time, most } = props;
  return (
    <span role="gridcell" class="listing-bar number">
      {time !== undefined && time > 0 && (
        <>
          <i class={kind} style={{ width: `${Math.max((100 * time) / most, 1)}%` }} aria-hidden="true" />
          <span>{timeText(time)}</span>
        </>
      )}
    </span>
  );
}
