// Data that a report carries inside itself, in `<script type="application/json" id="selftime-data">`.
// Each table is decompressed on first use.

import { DataError, NotInReport } from "./api.ts";
import type { Advice, Health } from "./advice.ts";
import type { Cell, Compared, ComparedTable, Contents, Data, Job, Metric, Options, Page, Pair, Query, Source, TraceInfo, ViewSpec, WhatIf } from "./api.ts";
import { decodeColumns, decompress } from "./packed.ts";
import type { PackedPage } from "./packed.ts";
import type { AdviceNumber, KnownNumbers, NumberOfSlice, NumberSlices } from "./numbers.ts";
import type { SqlResult, SqlSchema } from "./sql.ts";
import { sandwich } from "./sandwich.ts";
import { runQuery, gatherColumn, totals, valueAt } from "./table.ts";
import type { Table } from "./table.ts";
import { Turns } from "./turns.ts";
import { suitableResolution, isTimeRangeQuery, rowsInRange } from "./resolutions.ts";

/** The data of a report; compressed parts are texts for `decompress`. */
export interface ReportData {
  format: "selftime.report/1";
  /** The URL fragment of the panel to open first. */
  start: string;
  traces: TraceInfo[];
  views: string;
  rules: string;
  held: Record<string, Held>;
  jobs: HeldJob[];
  /** The comparison of two of the traces, by one metric or both. */
  compared: (Pair & { tables: ReportTable[] }) | null;
}

type PackedCompared = Omit<Compared, "tables"> & { tables: Record<ComparedTable, PackedPage> };

/** The data of a job that its traces share: views across ranks. */
interface HeldJob {
  traces: string[];
  job: string;
  tables: ReportTable[];
}

interface Held {
  contents: string;
  advice: string;
  tables: ReportTable[];
  sources: Record<string, string>;
}

export interface ReportTable {
  view: string;
  /** Options that differ from the view's defaults. */
  options: Options;
  packed: string;
}

interface File {
  count: number;
  parts: { from: number; lines: string[] }[];
}

/** A decompressed table: the rows in the report, and counts and sums of all rows. */
interface Whole {
  page: PackedPage;
  table: Table;
}

export async function readReportData(): Promise<ReportData | null> {
  const text = document.getElementById("selftime-data")?.textContent;
  if (!text) return null;
  const found = JSON.parse(text) as ReportData;
  if (found.start && !location.hash) location.hash = found.start;
  return found;
}

export class InlineData implements Data {
  readonly inline = true;
  readonly #carried: ReportData;
  readonly #unpacked = new Map<string, Promise<unknown>>();
  /** Tiles of the timeline come while it moves. */
  readonly #tiles = new Turns();

  constructor(inside: ReportData) {
    this.#carried = inside;
  }

  get pair(): Pair | null {
    return this.#carried.compared;
  }

  async traces(): Promise<TraceInfo[]> {
    return this.#carried.traces;
  }

  views(): Promise<ViewSpec[]> {
    return this.#once("views", () => decompress(this.#carried.views));
  }

  async contents(trace: string): Promise<Contents> {
    const { contents } = this.#held(trace);
    return this.#once(`${trace} contents`, () => decompress(contents));
  }

  async progress(): Promise<null> {
    return null;
  }

  async page(trace: string, view: string, options: Options, query: Query): Promise<Page> {
    const spec = (await this.views()).find((known) => known.name === view);
    if (spec === undefined) throw new DataError(`there is no view \`${view}\``);
    const isTile = isTimeRangeQuery(view, options);
    const { tables } = spec.across ? this.#job(trace) : this.#held(trace);
    const found = isTile
      ? suitableResolution(tables, options)
      : tables.find((table) => isSame(table, spec, options)) ??
        tables.find((table) => isMore(table, spec, options));
    if (found === undefined && view === "flame" && options["of"]) {
      return answered(await this.#sandwich(trace, spec, options), query, null);
    }
    if (found === undefined) throw new NotInReport(lacking(spec, options));
    const of = spec.across ? this.#job(trace).traces.join(" ") : trace;
    const key = `${of} ${view} ${JSON.stringify(found.options)}`;
    const whole = await this.#once(key, async () => inHand(await decompress(found.packed), spec));
    if (isTile) await this.#tiles.next();
    return answered(whole, query, isTile ? rowsInRange(whole.table, options) : first(whole, options));
  }

  /** The callers or callees of a name, from the graph of all names. */
  async #sandwich(trace: string, spec: ViewSpec, options: Options): Promise<Whole> {
    const { tables } = this.#held(trace);
    const { of, kind, order, min_share: _, ...shared } = options;
    const parts = ["top_down", "flat"].map(async (known) => {
      const table = tables.find((one) => isSame(one, spec, { ...shared, order: known }));
      return table && this.#once(`${trace} flame ${JSON.stringify(table.options)}`, async () => inHand(await decompress(table.packed), spec));
    });
    const [graph, flat] = await Promise.all(parts);
    const [name, its] = [String(of), String(kind ?? "")];
    const all = flat && sandwich(flat.table, "top_down", name, its, null);
    const total = all ? Number(valueAt(all.values["total_time"]!, 0)) : null;
    const table = graph && sandwich(graph.table, String(order ?? "top_down"), name, its, total);
    if (!graph || !table) throw new NotInReport(lacking(spec, options));
    const { rows } = table;
    const self = Array.from({ length: rows }, (_, row) => Number(valueAt(table.values["self_time"]!, row)));
    const totals = { self_time: self.reduce((sum, one) => sum + one, 0) };
    return { page: { ...graph.page, options: { ...graph.page.options, ...options }, all: rows, total: rows, rows, totals }, table };
  }

  async advice(trace: string): Promise<Advice> {
    const { advice } = this.#held(trace);
    return this.#once(`${trace} advice`, () => decompress(advice));
  }

  async numberSlices(trace: string, of: string): Promise<NumberSlices> {
    const found = (await this.#numbers(trace)).find((number) => number.of === of);
    if (found === undefined) throw new NotInReport("this report does not carry the slices of this number; `selftime serve` on the trace shows them");
    return found;
  }

  async numbers(trace: string): Promise<KnownNumbers<AdviceNumber>> {
    return { known: true, numbers: await this.#numbers(trace) };
  }

  async numbersOfSlice(trace: string, slice: number): Promise<KnownNumbers<NumberOfSlice>> {
    return { known: true, numbers: numbersWithSlice(await this.#numbers(trace), slice) };
  }

  /** The numbers of the advice with their longest slices; none if the report has no room for them. */
  async #numbers(trace: string): Promise<NumberSlices[]> {
    const held = this.#held(trace).tables.find((table) => table.view === NUMBERS);
    return held === undefined ? [] : this.#once(`${trace} ${NUMBERS}`, () => decompress(held.packed));
  }

  async health(trace: string): Promise<Health> {
    const { health, said } = await this.advice(trace);
    return { verdict: health.verdict, text: said.health, notes: health.notes.map((note) => note.text) };
  }

  async compare({ before, after }: Pair, metric: Metric | null): Promise<Compared> {
    const { compared } = this.#carried;
    if (compared === null || compared.before !== before || compared.after !== after) {
      throw new NotInReport(
        `this report contains ${compared === null ? "no" : "another"} comparison: ` +
          "`selftime compare BEFORE AFTER --format html -o FILE` makes one of any two traces",
      );
    }
    const found = compared.tables.find(({ options }) => metric === null || options["metric"] === metric);
    if (found === undefined) throw new NotInReport(`this report does not compare time of the ${metric}`);
    return this.#once(`compared ${found.options["metric"]}`, async () => {
      const told = await decompress<PackedCompared>(found.packed);
      const pages = Object.entries(told.tables).map(([name, page]) => [name, { ...page, columns: decodeColumns(page) }] as const);
      return { ...told, tables: Object.fromEntries(pages) as Record<ComparedTable, Page> };
    });
  }

  async job(trace: string): Promise<Job> {
    const { job, traces } = this.#job(trace);
    return this.#once(`${traces.join(" ")} job`, () => decompress(job));
  }

  async whatIf(): Promise<WhatIf> {
    throw new NotInReport("a report holds no program to simulate: `selftime what-if` answers in a terminal");
  }

  async sqlSchema(): Promise<SqlSchema> {
    throw new NotInReport("a report answers no queries: `selftime sql` does in a terminal");
  }

  async sql(): Promise<SqlResult> {
    throw new NotInReport("a report answers no queries: `selftime sql` does in a terminal");
  }

  async queryTrack(): Promise<Page> {
    throw new NotInReport("a report answers no queries: `selftime serve` shows their tracks");
  }

  async rule(name: string): Promise<string> {
    const pages: Record<string, string> = await this.#once("rules", () => decompress(this.#carried.rules));
    const page = pages[name];
    if (page === undefined) {
      throw new NotInReport(`\`selftime explain ${name}\` prints the page of this rule`);
    }
    return page;
  }

  async source(trace: string, file: string, from: number, rows: number): Promise<Source | null> {
    const packed = this.#held(trace).sources[file];
    if (packed === undefined) return null;
    const { count, parts }: File = await this.#once(`${trace} ${file}`, () => decompress(packed));
    const first = Math.min(Math.max(from, 1), Math.max(count, 1));
    const part = parts.find((one) => one.from < first + rows && first < one.from + one.lines.length);
    if (part === undefined) return null;
    const skipped = Math.max(0, first - part.from);
    const begin = part.from + skipped;
    return { file, from: begin, lines: part.lines.slice(skipped, first + rows - part.from), count };
  }

  csv(): string | null {
    return null;
  }

  #held(trace: string): Held {
    const held = this.#carried.held[trace];
    if (held === undefined) throw new DataError(`the report does not carry the trace \`${trace}\``);
    return held;
  }

  #job(trace: string): HeldJob {
    const held = this.#carried.jobs.find((job) => job.traces.includes(trace));
    if (held === undefined) throw new DataError(`the report does not carry the job of \`${trace}\``);
    return held;
  }

  #once<T>(key: string, unpack: () => Promise<T>): Promise<T> {
    const known = this.#unpacked.get(key) as Promise<T> | undefined;
    if (known !== undefined) return known;
    const found = unpack();
    this.#unpacked.set(key, found);
    return found;
  }
}

function inHand(page: PackedPage, spec: ViewSpec): Whole {
  const values = decodeColumns(page);
  const known = spec.columns.filter((column) => values[column.name] !== undefined);
  return { page, table: { columns: known, values, rows: page.rows } };
}

/** Returns the requested rows of a table. */
function answered(whole: Whole, query: Query, among: Uint32Array | null): Page {
  const { page } = whole;
  const table = among === null ? whole.table : some(whole.table, among);
  const { rows, window } = runQuery(table, query);
  const isAll = among === null && !query.find && !query.where?.length;
  const names = query.columns ?? Object.keys(table.values);
  const shown = names.flatMap((name) => {
    const values = table.values[name];
    return values === undefined ? [] : [[name, gatherColumn(values, window)] as const];
  });
  return {
    ...page,
    all: among === null ? page.all : table.rows,
    total: rows.length,
    from: Math.min(query.from ?? 0, rows.length),
    rows: window.length,
    columns: Object.fromEntries(shown),
    totals: isAll ? page.totals : totals(table, rows, Object.keys(page.totals)),
    ...(among === null && page.rows < page.all ? { held: page.rows } : {}),
  };
}

/** The value of the option `top` if the table has more rows; null for all rows. */
function first({ page, table }: Whole, options: Options): Uint32Array | null {
  const top = Number(options["top"] ?? 0);
  if (top === 0 || top >= table.rows || Number(page.options["top"] ?? 0) === top) return null;
  return Uint32Array.from({ length: top }, (_, row) => row);
}

function some(table: Table, rows: Uint32Array): Table {
  const values = Object.entries(table.values).map(([name, held]) => [name, gatherColumn(held, rows)] as const);
  return { columns: table.columns, values: Object.fromEntries(values), rows: rows.length };
}

/** Whether a table has these options; missing options have the view's defaults. */
function isSame(table: ReportTable, spec: ViewSpec, options: Options): boolean {
  const own = Object.fromEntries(spec.options.map((option) => [option.name, option.default]));
  const names = new Set([...Object.keys(options), ...Object.keys(table.options)]);
  return (
    table.view === spec.name &&
    [...names].every((name) => {
      const asked: Cell = options[name] ?? own[name] ?? null;
      return String(asked) === String(table.options[name] ?? own[name] ?? null);
    })
  );
}

/** Whether a table differs from the requested one only by having more rows. */
function isMore(table: ReportTable, spec: ViewSpec, options: Options): boolean {
  const asked = Number(options["top"] ?? 0);
  const top = Number(table.options["top"] ?? 0);
  return asked > 0 && (top === 0 || top > asked) && isSame(table, spec, { ...options, top });
}

/** The numbers of which a slice is one, each finding and each row once. */
export function numbersWithSlice(numbers: readonly NumberSlices[], slice: number): NumberOfSlice[] {
  const found = new Map<string, NumberOfSlice>();
  for (const { slices, stretches: _, ...number } of numbers) {
    const ids = slices.columns["id"];
    const owner = number.of.split(":", 2).join(":");
    if (ids === undefined || !("values" in ids) || found.has(owner) || !ids.values.includes(slice)) continue;
    found.set(owner, { ...number, relation: "own", count: 1 });
  }
  return [...found.values()];
}

/** The table of the numbers of the advice in a report. */
const NUMBERS = "number_slices";

/** Views about single slices; a report has only the costliest. */
const OF_SLICES: ReadonlySet<string> = new Set(["occurrences", "selection", "matches", "timeline"]);

function lacking(spec: ViewSpec, options: Options): string {
  if (spec.name === "slice") {
    return "a report does not carry what each slice was called with; `selftime serve` on the trace shows it";
  }
  if (OF_SLICES.has(spec.name)) {
    return "a report carries the slices of what is heaviest; `selftime serve` on the trace shows all of them";
  }
  const told = spec.options
    .filter(({ name, default: own }) => String(options[name] ?? own) !== String(own))
    .map(({ name }) => `\`${name}\` as \`${options[name]}\``);
  const by = told.length > 0 ? ` with ${told.join(" and ")}` : "";
  return `a report does not carry \`${spec.name}\`${by}; \`selftime serve\` on the trace shows it`;
}
