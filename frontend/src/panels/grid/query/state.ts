// The state of a table in the URL: order, search, filters, columns, open row and options.

import type { Cell, Column, Filter, Options, OptionSpec, Query, ViewSpec } from "../../../data/api.ts";
import { parseQuantity } from "../../../units.ts";

export interface GridState {
  /** A column, with "-" before it for descending; empty for the view's own order. */
  sort: string;
  find: string;
  /** Filters as they were typed: values may have units. */
  where: readonly Filter[];
  /** The chosen columns in their order; null for those that the grid chooses. */
  columns: readonly string[] | null;
  /** Widths that were set by hand, in pixels. */
  widths: Readonly<Record<string, number>>;
  /** The open row, by its place in the shown order. */
  row: number | null;
  /** Those that differ from the panel's defaults, or else the view's. */
  options: Options;
}

/** Words of the grid itself. An option of one of these names has a dot before it. */
const TAKEN: ReadonlySet<string> = new Set(["trace", "sort", "find", "where", "cols", "widths", "row"]);

type Params = Readonly<Record<string, string>>;
type Changes = Record<string, string | undefined>;

const OPS: ReadonlySet<string> = new Set(["is", "has", "from", "to"]);

export function wordOf(option: string, taken: readonly string[] = []): string {
  return TAKEN.has(option) || taken.includes(option) ? `.${option}` : option;
}

/** `taken` are words that the panel uses for itself, `defaults` its options unless others are chosen. */
export function readState(
  params: Params,
  spec: ViewSpec,
  taken: readonly string[] = [],
  defaults: Options = {},
): GridState {
  const known = new Set(spec.columns.map((column) => column.name));
  const sort = params["sort"] ?? "";
  const chosen = params["cols"]?.split(",").filter((name) => known.has(name)) ?? [];
  const row = Number(params["row"] ?? Number.NaN);
  return {
    sort: known.has(sort.replace(/^-/, "")) ? sort : "",
    find: params["find"] ?? "",
    where: readFilters(params["where"]).filter((filter) => known.has(filter.column)),
    columns: chosen.length > 0 ? chosen : null,
    widths: readWidths(params["widths"], known),
    row: Number.isInteger(row) && row >= 0 ? row : null,
    options: readOptions(params, spec, taken, defaults),
  };
}

function readFilters(words: string | undefined): Filter[] {
  if (words === undefined) return [];
  let found: unknown;
  try {
    found = JSON.parse(words);
  } catch {
    return [];
  }
  return Array.isArray(found) ? found.filter(isFilter) : [];
}

function isFilter(found: unknown): found is Filter {
  if (typeof found !== "object" || found === null) return false;
  const { column, op, value } = found as Record<string, unknown>;
  return typeof column === "string" && typeof value === "string" && OPS.has(String(op));
}

function readWidths(words: string | undefined, known: ReadonlySet<string>): Record<string, number> {
  const pairs = (words ?? "").split(",").map((word) => word.split(":") as [string, string?]);
  const found = pairs.map(([name, width]) => [name, clamped(Number(width))] as const);
  return Object.fromEntries(found.filter(([name, width]) => known.has(name) && width > 0));
}

const NARROWEST = 40;
const WIDEST = 1600;

export function clamped(width: number): number {
  return Number.isFinite(width) ? Math.round(Math.min(Math.max(width, NARROWEST), WIDEST)) : 0;
}

function readOptions(params: Params, spec: ViewSpec, taken: readonly string[], defaults: Options): Options {
  const found: Options = {};
  for (const option of spec.options) {
    const word = params[wordOf(option.name, taken)];
    const value = word === undefined ? undefined : optionValue(option, word);
    if (value !== undefined && value !== (defaults[option.name] ?? option.default)) found[option.name] = value;
  }
  return found;
}

/** An option's value from a word; undefined if it has none so. */
export function optionValue(option: OptionSpec, word: string): Cell | undefined {
  if (option.type === "flag") return word === "true" ? true : word === "false" ? false : undefined;
  if (option.type === "choice") return option.choices.includes(word) ? word : undefined;
  if (option.type === "text") return word;
  const number = Number(word);
  const fits = word.trim() !== "" && (option.type === "int" ? Number.isSafeInteger(number) : Number.isFinite(number));
  return fits ? number : undefined;
}

/** The words of the address for some parts of the state; undefined removes a word. */
export function stateParameters(
  state: Partial<GridState>,
  spec: ViewSpec,
  taken: readonly string[] = [],
  defaults: Options = {},
): Changes {
  const changes: Changes = {};
  if (state.sort !== undefined) changes["sort"] = state.sort || undefined;
  if (state.find !== undefined) changes["find"] = state.find || undefined;
  if (state.where) changes["where"] = state.where.length > 0 ? JSON.stringify(state.where) : undefined;
  if (state.columns !== undefined) changes["cols"] = state.columns?.join(",");
  if (state.widths) changes["widths"] = writtenWidths(state.widths);
  if (state.row !== undefined) changes["row"] = state.row === null ? undefined : String(state.row);
  for (const [name, value] of Object.entries(state.options ?? {})) {
    const option = spec.options.find((known) => known.name === name);
    const isStandard = value === (defaults[name] ?? option?.default);
    changes[wordOf(name, taken)] = isStandard ? undefined : String(value);
  }
  return changes;
}

function writtenWidths(widths: Readonly<Record<string, number>>): string | undefined {
  return Object.entries(widths).map(([name, width]) => `${name}:${width}`).join(",") || undefined;
}

/** What to ask for: filters with plain numbers in place of quantities, and those of the panel. */
export function queryOf(state: GridState, columns: readonly Column[], own: readonly Filter[] = []): Query {
  const where = [...own, ...state.where.map((filter) => plainly(filter, columns))];
  return {
    ...(state.sort ? { sort: state.sort } : {}),
    ...(state.find ? { find: state.find } : {}),
    ...(where.length > 0 ? { where } : {}),
  };
}

function plainly(filter: Filter, columns: readonly Column[]): Filter {
  const unit = columns.find((column) => column.name === filter.column)?.unit ?? "text";
  if (unit === "name" || unit === "text" || unit === "sentence" || unit === "flag") return filter;
  if (filter.op === "has" || filter.value === "") return filter;
  const number = parseQuantity(filter.value, unit);
  return number === null ? filter : { ...filter, value: String(number) };
}

/** The sort order after a click on a heading: numbers start with the largest, texts with A. */
export function nextSort(sort: string, column: string, isNumber: boolean): string {
  const ways = isNumber ? [`-${column}`, column, ""] : [column, `-${column}`, ""];
  return ways[(ways.indexOf(sort) + 1) % ways.length] ?? "";
}
