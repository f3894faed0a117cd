// What the page asks for, and in which form the answers come. The only types that front end and
// server share; docs/formats.md describes the JSON.

/** How a quantity is printed; see units.py. */
export type Unit =
  | "ns" | "instant" | "bytes" | "count" | "flops" | "flops/s" | "bytes/s" | "flops/byte"
  | "ratio" | "percent" | "gb/s" | "times" | "id" | "name" | "text" | "sentence" | "flag";

export type Cell = number | string | boolean | null;

export interface Column {
  name: string;
  unit: Unit;
  doc: string;
  nullable: boolean;
}

export interface OptionSpec {
  name: string;
  type: "int" | "float" | "text" | "flag" | "choice";
  default: Cell;
  choices: string[];
  /** Words of which a text takes one, or several joined by "+"; empty if it takes any. */
  parts: string[];
}

export interface ViewSpec {
  name: string;
  title: string;
  doc: string;
  needs: string[];
  /** Whether it relates the ranks of a job: all traces of the job have the same table. */
  across: boolean;
  options: OptionSpec[];
  columns: Column[];
}

export interface TraceInfo {
  /** What `trace=` takes. */
  id: string;
  name: string;
  /** The run (folder) that it belongs to. */
  run: string;
  worker: string;
  /** The recording's number or time, where one worker has several. */
  span: string;
  bytes: number;
  /** The same for all traces of one folder, but for folders of ranks. */
  job: string;
}

/** A trace of a job, and how its instants are read by the common clock. */
export interface Clocked {
  trace: string;
  /** ns to be added; null where nothing tells when the recording began. */
  shift: number | null;
  /** Seconds to be added for each second. */
  drift: number;
}

export interface Rank {
  /** Its number; of a rank that has none a number that no other has. */
  key: number;
  label: string;
  rank: number | null;
  device: string | null;
  /** ns that its ends are apart from the others' by the common clock; null: it is not aligned. */
  residual: number | null;
  /** Its recordings, in order of time. */
  traces: Clocked[];
}

export interface ProcessGroup {
  group: string | null;
  description: string | null;
  axis: string | null;
  backend: string | null;
  size: number | null;
  /** Null where the trace does not write all of them. */
  ranks: number[] | null;
}

/** The job that a trace belongs to: what the traces of its ranks tell together. */
export interface Job {
  /** How many ranks it had; null if that is not told. */
  size: number | null;
  ranks: Rank[];
  missing: number[];
  refused: { name: string; why: string }[];
  notes: string[];
  /** The greatest of the ranks' residuals. */
  residual: number | null;
  groups: ProcessGroup[];
}

/** Values of a column, plain or as numbers of texts; unknown ones are null. */
export type Values = { values: Cell[] } | { codes: (number | null)[]; texts: string[] };

/** Some rows of a view's table, after search, filters and sorting. */
export interface Page {
  view: string;
  options: Record<string, Cell>;
  /** Rows of the table without search and filters, and with them. */
  all: number;
  total: number;
  /** Rows that a report carries of the table, its first ones, where it has no room for all. */
  held?: number;
  /** The first row of this page, and how many it has: fewer than asked for if they are large. */
  from: number;
  rows: number;
  columns: Record<string, Values>;
  /** Sums over all rows that match, of the columns whose sum means something. */
  totals: Record<string, number | null>;
  /** What the recording lacks for this view, as sentences. */
  lacks: string[];
}

/** One condition on a column; texts are compared without case. */
export interface Filter {
  column: string;
  op: "is" | "has" | "from" | "to";
  value: string;
}

export interface Query {
  /** Column to sort by, with "-" before it for descending; the view's own order without. */
  sort?: string;
  /** A text that some column of the row must contain. */
  find?: string;
  where?: Filter[];
  from?: number;
  rows?: number;
  /** Only these columns; all without. Tiles of the timeline leave most of them out. */
  columns?: readonly string[];
}

export type Options = Record<string, Cell>;

export type Metric = "host" | "device";

export type ComparedTable = "steps" | "parts" | "tree" | "kernels" | "kernel_names";

/** One trace held against another, as `selftime compare` does: times a step, after less before. */
export interface Compared {
  /** Whose time the tree compares, and whose it could. */
  metric: Metric;
  metrics: Metric[];
  /** In what the recordings differ besides. */
  notes: string[];
  /** The steps in the words of the command; a sentence where there is none to compare. */
  said: { steps: StepWords[]; no_steps: string | null };
  /** What the tables and their columns mean. */
  specs: Record<ComparedTable, { doc: string; columns: Column[] }>;
  /** All rows, but of the tree those that take most where it is large. */
  tables: Record<ComparedTable, Page>;
}

/** What is said of a time of the step, before and after. */
export interface StepWords {
  title: string;
  before: string;
  after: string;
  /** Null where the difference may be chance. */
  verdict: "slower" | "faster" | null;
  /** What is said of the difference. */
  said: string;
  /** Its interval, and of how many steps it is. */
  surely: string;
}

/** Two traces by their ids. */
export interface Pair {
  before: string;
  after: string;
}

export interface Where {
  file: string | null;
  line: number | null;
  function: string | null;
  how: "stamp" | "stack" | "static" | "definition" | "module" | "unknown";
}

export interface Saving {
  estimate_ms: number | null;
  low_ms: number | null;
  high_ms: number | null;
  upper_ms: number | null;
  speedup: number | null;
  method: "replay" | "model" | "none";
}

export interface Evidence {
  metric: string;
  value: number | null;
  unit: string;
  events: number[];
}

export interface Finding {
  rule: string;
  /** What it is asked for by, alone. */
  id: string;
  covers: string[];
  title: string;
  where: Where;
  count_per_step: number | null;
  saving: Saving;
  confidence: "high" | "medium" | "low";
  semantics: "neutral" | "numerics" | "training";
  evidence: Evidence[];
  fix: { text: string; code: string | null };
}

/** `selftime.advice/1`, as `selftime advise --format json` prints it. */
export interface Advice {
  format: string;
  health: {
    verdict: Health["verdict"];
    notes: { check: string; text: string; value: number | null }[];
  };
  step: { count: number; device_ms: number | null; host_ms: number | null; regime: string | null } | null;
  findings: Finding[];
  joint: { estimate_ms: number | null; speedup: number | null } | null;
  checked: { rule: string; reason: string; upper_ms: number | null }[];
  unknown: { rule: string; needs: string }[];
  /** The answer in words. For the page; not in the JSON of the command. */
  said: Said;
}

/** Whether a trace is fit for advice, as a sentence, and what limits it. */
export interface Health {
  verdict: "good" | "degraded" | "unusable";
  text: string;
  notes: string[];
}

/** What the command says of an answer, sentence by sentence: the page shows these as they are. */
export interface Said {
  health: string;
  step: string;
  nothing_to_do: string | null;
  /** In the order of the findings. */
  findings: SaidFinding[];
  joint: string | null;
  /** Of all changes together. */
  speedup: string | null;
  checked_title: string;
  checked: { rule: string; text: string }[];
  /** How many more causes were looked for and not found. */
  absent: string | null;
  unknown_title: string;
  unknown: { text: string; rules: string[] }[];
  /** What `selftime advise --format markdown` prints. */
  markdown: string;
}

export interface SaidFinding {
  /** File and line, empty where the file is unknown; what follows it. */
  line: string;
  place: string;
  /** Estimate, interval, speed-up: joined by blanks they are one sentence. */
  saving: string[];
  sureness: string;
  /** In the order of the finding's evidence. */
  evidence: { metric: string; value: string }[];
  /** What `selftime advise --finding ID --format markdown` prints. */
  markdown: string;
}

/** Lines of a source file that the trace names, if the file is at hand. */
export interface Source {
  file: string;
  /** Number of the first line. */
  from: number;
  lines: string[];
  /** Lines of the whole file. */
  count: number;
}

/** Where a page gets its data: a server, or what a report carries with it. */
export interface Data {
  /** Whether everything is in the page itself; then tables and timeline may be thinned. */
  readonly inline: boolean;
  /** The two traces that the page was made for; null where others can be chosen. */
  readonly pair: Pair | null;
  traces(): Promise<TraceInfo[]>;
  views(): Promise<ViewSpec[]>;
  page(trace: string, view: string, options: Options, query: Query): Promise<Page>;
  advice(trace: string): Promise<Advice>;
  /** What the advice begins with, which is known long before it. */
  health(trace: string): Promise<Health>;
  /** By the metric that fits both, unless one is asked for. */
  compare(pair: Pair, metric: Metric | null): Promise<Compared>;
  /** The job of a trace. Views across ranks are answered of it, whichever of its traces is named. */
  job(trace: string): Promise<Job>;
  /** The page of a rule, as Markdown. */
  rule(name: string): Promise<string>;
  /** Lines of a file around one; null if the file is not at hand. */
  source(trace: string, file: string, from: number, rows: number): Promise<Source | null>;
  /** Address of the table as CSV; null where there is no server: the panel writes it then. */
  csv(trace: string, view: string, options: Options, query: Query): string | null;
}

/** What the server or the report said was wrong, as one sentence for the user. */
export class DataError extends Error {}

/** A report has no room for it; asking again does not help. */
export class NotCarried extends DataError {}
