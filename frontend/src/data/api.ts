// The interface between page and server or report: requests and the types of their JSON responses,
// which docs/formats.md describes.

import type { JobAccount } from "./account.ts";
import type { Advice, Health, StepWithFix } from "./advice.ts";
import type { AdviceNumber, KnownNumbers, NumberOfSlice, NumberSlices } from "./numbers.ts";
import type { SqlResult, SqlSchema } from "./sql.ts";

/** The unit of a column, which decides how values are printed; see units.py. */
export type Unit =
  | "ns" | "instant" | "bytes" | "count" | "flops" | "flops/s" | "bytes/s" | "flops/byte"
  | "ratio" | "percent" | "gb/s" | "times" | "id" | "name" | "text" | "sentence" | "flag";

export type Cell = number | string | boolean | null;

/** An enumerated value in words: its name, and a sentence on what it means, which may be empty. */
export interface Label {
  text: string;
  doc: string;
}

export interface Column {
  name: string;
  unit: Unit;
  doc: string;
  nullable: boolean;
  /** The words for identifiers in the column, by value; empty if values are shown as they are. */
  labels: Readonly<Record<string, Label>>;
}

export interface OptionSpec {
  name: string;
  type: "int" | "float" | "text" | "flag" | "choice";
  default: Cell;
  choices: string[];
  /** Allowed words of a text option, which may be joined by "+"; empty if any text is allowed. */
  parts: string[];
}

export interface ViewSpec {
  name: string;
  title: string;
  doc: string;
  needs: string[];
  /** Whether the view compares the ranks of a job, so that all its traces give the same table. */
  across: boolean;
  options: OptionSpec[];
  columns: Column[];
}

export interface TraceInfo {
  /** The value of the URL parameter `trace`. */
  id: string;
  name: string;
  /** The run, which is the folder of the trace. */
  run: string;
  worker: string;
  /** The recording's number or time, if a worker has several. */
  span: string;
  bytes: number;
  /** An id shared by all traces of a job; unrelated traces of one folder have different ids. */
  job: string;
  /** Whether it is the ledger of a run alone, without a trace of any of its steps. */
  is_ledger: boolean;
  /** When the file was last written, in seconds since the epoch. */
  modified: number | null;
  /** Null as long as they are not known: the trace may never have been opened. */
  device: string | null;
  steps: number | null;
}

/** What a trace holds: the panel to open first, and what each view lacks, as sentences. */
export interface Contents {
  landing: string;
  lacks: Readonly<Record<string, readonly string[]>>;
}

/** How far the reading of a trace is, in bytes of its file. */
export interface Progress {
  stage: string;
  done: number;
  total: number | null;
}

/** A trace of a job, and the conversion of its times to the common clock. */
export interface TraceClock {
  trace: string;
  /** Offset in ns; null if the recording's start time is unknown. */
  shift: number | null;
  /** Drift, in seconds per second. */
  drift: number;
  /** The instant from which its times count, in microseconds since the epoch; null if unknown. */
  origin: number | null;
}

export interface Rank {
  /** The rank's number, or another unique number if it has none. */
  key: number;
  label: string;
  rank: number | null;
  device: string | null;
  /** Remaining error of the clock alignment in ns; null if the clock is not aligned. */
  residual: number | null;
  /** The rank's recordings, in order of time. */
  traces: TraceClock[];
}

export interface ProcessGroup {
  group: string | null;
  description: string | null;
  axis: string | null;
  backend: string | null;
  size: number | null;
  /** The ranks of the group; null if the trace does not list all of them. */
  ranks: number[] | null;
}

/** A way to group the ranks of a job, such as by stage or host, and how that is known. */
export interface RankOrder {
  /** Its name in the address of the page. */
  name: string;
  title: string;
  how: string;
  /** The groups in order, with the keys of their ranks. */
  groups: { title: string; ranks: number[] }[];
}

/** The job that a trace belongs to, with its ranks and process groups. */
export interface Job {
  /** The number of ranks; null if unknown. */
  size: number | null;
  ranks: Rank[];
  missing: number[];
  refused: { name: string; why: string }[];
  notes: string[];
  /** The largest residual of all ranks, in ns. */
  residual: number | null;
  groups: ProcessGroup[];
  /** Number of ranks, device, error of the clocks and number of groups, as texts. */
  facts: string[];
  account: JobAccount | null;
  /** By what the ranks can be grouped, besides their numbers. */
  orders: RankOrder[];
  /** What the trace of a single rank does not show; null if there are several. */
  single_rank_note: string | null;
}

/** Values of a column, plain or as indices of texts; unknown values are null. */
export type Values = { values: Cell[] } | { codes: (number | null)[]; texts: string[] };

/** Some rows of a view's table, after search, filters and sorting. */
export interface Page {
  view: string;
  options: Record<string, Cell>;
  /** The number of rows before and after search and filters. */
  all: number;
  total: number;
  /** The number of rows in the report, if it does not contain all. */
  held?: number;
  /** Index of the page's first row, and its number of rows; fewer than requested if rows are large. */
  from: number;
  rows: number;
  columns: Record<string, Values>;
  /** Sums over all matching rows, for columns whose sum is meaningful. */
  totals: Record<string, number | null>;
  /** What the recording lacks for this view, as sentences. */
  lacks: string[];
}

/** A condition on a column; texts are compared without case. */
export interface Filter {
  column: string;
  op: "is" | "has" | "from" | "to";
  value: string;
}

export interface Query {
  /** Column to sort by, with "-" before it for descending; by default the view's order. */
  sort?: string;
  /** A text that any column of the row must contain. */
  find?: string;
  where?: Filter[];
  from?: number;
  rows?: number;
  /** Columns to return; all by default. */
  columns?: readonly string[];
}

export type Options = Record<string, Cell>;

export type Metric = "host" | "device";

export type ComparedTable = "steps" | "account" | "parts" | "tree" | "kernels" | "kernel_names" | "run_parts" | "run_steps";

/** The comparison of two traces, as by `selftime compare`: times per step, after minus before. */
export interface Compared {
  /** The metric that the tree compares, and the available metrics. */
  metric: Metric;
  metrics: Metric[];
  /** Other differences between the recordings, as sentences. */
  notes: string[];
  /** The run and the step times as texts; sentences, null where there is nothing to compare. */
  said: { run: string | null; steps: StepText[]; no_steps: string | null };
  /** Descriptions of the tables and their columns. */
  specs: Record<ComparedTable, { doc: string; columns: Column[] }>;
  /** All rows; of a large tree the costliest. */
  tables: Record<ComparedTable, Page>;
}

/** Texts about one kind of step time, before and after. */
export interface StepText {
  title: string;
  before: string;
  after: string;
  /** Null if the difference is not significant. */
  verdict: "slower" | "faster" | null;
  /** The difference as text. */
  difference_text: string;
  /** The difference's interval and the numbers of steps, as text. */
  interval_text: string;
}

/** Two traces by their ids. */
export interface Pair {
  before: string;
  after: string;
}

export type ChangeKind = "scale" | "remove" | "hide";

/** A change that the reader asks for: a pattern, and the share of its time that is left. */
export interface AskedChange {
  change: ChangeKind;
  pattern: string;
  kept_share: number;
}

/** The predicted step after changes, as texts, and what each change matched. */
export interface WhatIf {
  figures: { label: string; text: string }[];
  step: StepWithFix;
  changes: {
    text: string;
    name_count: number;
    names: { name: string; kind: string; count: string; time: string }[];
  }[];
}

/** Lines of a source file that the trace names. */
export interface Source {
  file: string;
  /** Number of the first line. */
  from: number;
  lines: string[];
  /** The number of lines of the file. */
  count: number;
}

/** The page's data source: a server, or the data inside a report. */
export interface Data {
  /** Whether the data is inside the page; tables and timeline may then be incomplete. */
  readonly inline: boolean;
  /** The two traces that a comparison report is about; null if the reader can choose. */
  readonly pair: Pair | null;
  traces(): Promise<TraceInfo[]>;
  views(): Promise<ViewSpec[]>;
  /** Opens a trace, which may take long; aborting the signal lets the server stop reading. */
  contents(trace: string, signal: AbortSignal): Promise<Contents>;
  /** Returns how far the reading of a trace is; null if it is not being read. */
  progress(trace: string): Promise<Progress | null>;
  page(trace: string, view: string, options: Options, query: Query): Promise<Page>;
  advice(trace: string): Promise<Advice>;
  /** Returns the slices of a number of the advice, which is computed if it is not known. */
  numberSlices(trace: string, of: string): Promise<NumberSlices>;
  /** Returns the numbers of the advice that stand for slices, if it is known. */
  numbers(trace: string): Promise<KnownNumbers<AdviceNumber>>;
  /** Returns those that a slice is a part of; where the advice is not known, `compute` asks for it. */
  numbersOfSlice(trace: string, slice: number, compute: boolean): Promise<KnownNumbers<NumberOfSlice>>;
  /** Returns the trace's health, which is known long before the advice. */
  health(trace: string): Promise<Health>;
  /** Returns the comparison by the given metric; by default one that both recordings have. */
  compare(pair: Pair, metric: Metric | null): Promise<Compared>;
  /** Returns the job of a trace. */
  job(trace: string): Promise<Job>;
  /** Returns the step after changes; a report cannot simulate the program. */
  whatIf(trace: string, changes: readonly AskedChange[]): Promise<WhatIf>;
  /** Returns what a query in SQL can read; a report cannot answer queries. */
  sqlSchema(trace: string): Promise<SqlSchema>;
  /** Returns the result of a query in SQL; the signal cancels it. */
  sql(trace: string, query: string, signal: AbortSignal): Promise<SqlResult>;
  /** Returns what the timeline shows of a query's result, as the views `timeline` and `slice` do. */
  queryTrack(trace: string, query: string, options: Options, rows: Query): Promise<Page>;
  /** Returns the documentation of a rule, as Markdown. */
  rule(name: string): Promise<string>;
  /** Returns lines of a source file; null if the file is not available. */
  source(trace: string, file: string, from: number, rows: number): Promise<Source | null>;
  /** Returns the URL of the table as CSV; null without a server: the panel then writes the CSV. */
  csv(trace: string, view: string, options: Options, query: Query): string | null;
}

/** An error with one sentence for the user. */
export class DataError extends Error {}

/** The report does not contain the data; another request would fail, too. */
export class NotInReport extends DataError {}
