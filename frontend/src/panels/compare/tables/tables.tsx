// Views of both recordings side by side.

import { useMemo } from "preact/hooks";
import type { Cell, Unit, Pair } from "../../../data/api.ts";
import { QueryResult, useQuery } from "../../../parts/data/asking.tsx";
import { Choice } from "../../../parts/controls/choice.tsx";
import { MissingDataNote } from "../../../parts/text/missing-data.tsx";
import { type FullTable, texts, loadTable } from "../../../parts/data/full-table.ts";
import { change } from "../../../route.ts";
import { countText } from "../../../units.ts";
import type { PanelProps } from "../../panel.ts";
import { type Key, type ComparableView, measuresOf } from "./comparable-views.ts";
import {
  type Row,
  type Steps,
  divisors,
  mergeRows,
  overviewRows,
  renameFiles,
  matchFiles,
  sums,
} from "./merging.ts";
import { Sheet } from "./sheet.tsx";

interface TableProps extends PanelProps {
  sides: Sides;
}

export function Overview(props: TableProps) {
  const { data, sides, params } = props;
  const { before, after } = sides;
  const asked = useQuery(
    () => Promise.all([loadTable(data, before, "overview"), loadTable(data, after, "overview")]),
    `${before} ${after}`,
  );
  return (
    <QueryResult asked={asked}>
      {([one, other]) => (
        <Sheet
          rows={overviewRows(one, other)}
          heads={["Figure", "Section", "Device"]}
          params={params}
          inOrder
          word="sort"
          find={params["find"] ?? ""}
          linkTo={null}
          totals={false}
          label="Overview of both"
        />
      )}
    </QueryResult>
  );
}

export function Tables(props: TableProps & { comparable: ComparableView; steps: readonly [Steps, Steps] }) {
  const { data, sides, comparable, params, views, steps } = props;
  const { before, after } = sides;
  const key = comparable.keys.find((known) => known.name === params["by"]) ?? (comparable.keys[0] as Key);
  const spec = views.get(comparable.view);
  const counts = spec?.options.some((option) => option.name === "counted") === true && !data.inline;
  const per = divisors(params["per"] !== "recording", steps, counts);
  const options = { ...key.options, ...(per !== null && counts ? { counted: true } : {}) };
  const columns = [...key.columns, ...comparable.measures];
  const ask = () => Promise.all([before, after].map((one) => loadTable(data, one, comparable.view, options, { columns })));
  const asked = useQuery(ask, JSON.stringify([before, after, comparable.view, options]));
  const units = new Map(spec?.columns.map((column) => [column.name, column.unit]));
  return (
    <QueryResult asked={asked} what="both tables">
      {([one, other]) => one && other && (
        <Merged {...props} key={comparable.view} viewKey={key} per={per} one={one} other={other} units={units} counts={counts} />
      )}
    </QueryResult>
  );
}

interface MergedProps extends TableProps {
  comparable: ComparableView;
  viewKey: Key;
  steps: readonly [Steps, Steps];
  per: [number, number] | null;
  one: FullTable;
  other: FullTable;
  units: ReadonlyMap<string, Unit>;
  counts: boolean;
}

function Merged(props: MergedProps) {
  const { comparable, viewKey, params, per, one, other, units, sides } = props;
  const measures = measuresOf(comparable, viewKey);
  const measure = measures.find((known) => known === params["measure"]) ?? measures.find((known) => says(one, known) || says(other, known)) ?? measures[0] ?? "";
  const rows: Row[] = useMemo(() => {
    const [byA, byB] = per ?? [1, 1];
    const same = matchFiles(texts(one, "file").filter(Boolean), texts(other, "file").filter(Boolean));
    const [left, right] = [sums(one, viewKey.columns, measure, byA), sums(renameFiles(other, same), viewKey.columns, measure, byB)];
    return mergeRows(left, right, units.get(measure) ?? "count");
  }, [one, other, viewKey, measure, per?.join()]);
  return (
    <>
      <div class="compare-how">
        <Choice
          label="Measure"
          value={measure}
          choices={measures.map((known) => [known, known.replaceAll("_", " ")] as const)}
          onChange={(next) => change({ measure: next })}
        />
        <Per {...props} />
      </div>
      <MissingDataNote lacks={[...new Set([...one.lacks, ...other.lacks])]} />
      <Sheet
        rows={rows}
        heads={viewKey.columns.map(titled)}
        params={params}
        inOrder={false}
        word="sort"
        find={params["find"] ?? ""}
        linkTo={(key) => linkOf(comparable, viewKey, key)}
        pair={sides}
        label={`${titled(comparable.text)} of both`}
        totals={comparable.sums.includes(measure)}
      />
    </>
  );
}

/** The link to a row in the view's own panel. */
function linkOf(comparable: ComparableView, viewKey: Key, key: readonly Cell[]): [panel: string, params: Record<string, string>] {
  const of = (column: string) => String(key[viewKey.columns.indexOf(column)] ?? "");
  if (comparable.view === "lines") {
    return ["lines", { file: of("file"), ...(viewKey.columns.includes("line") && of("line") ? { line: of("line") } : {}) }];
  }
  const find = of(viewKey.columns[0] ?? "");
  return [comparable.view, { find }];
}

function says(table: FullTable, measure: string): boolean {
  return (table.columns[measure] ?? []).some((value) => typeof value === "number" && value !== 0);
}

function titled(column: string): string {
  const words = column.replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

function Per(props: MergedProps) {
  const { params, per, steps, counts } = props;
  const [a, b] = steps;
  const numbers = per ?? [a.found, b.found];
  const canStep = a.found > 0 && b.found > 0 && (!counts || (a.counted > 0 && b.counted > 0));
  if (!canStep) {
    return <span class="muted">Sums of all that was recorded: one of the recordings has no steps to divide by.</span>;
  }
  const kind = counts ? "steps that count" : "steps";
  return (
    <>
      <Choice
        label="Sums"
        value={params["per"] === "recording" ? "recording" : "step"}
        choices={[["step", "by the step"], ["recording", "of the recording"]]}
        onChange={(next) => change({ per: next === "step" ? undefined : next })}
      />
      <span class="muted">
        {per !== null
          ? `divided by ${countText(numbers[0])} and ${countText(numbers[1])} ${kind}`
          : a.found === b.found ? `${countText(a.found)} steps each`
          : `${countText(a.found)} steps before, ${countText(b.found)} after: sums differ for that alone`}
      </span>
    </>
  );
}

export interface Sides extends Pair {
  stepsBefore: FullTable;
  stepsAfter: FullTable;
}
