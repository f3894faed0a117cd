// Data from the server of this script; URLs are relative to the script, so that the page works
// behind any prefix.

import { DataError } from "./api.ts";
import type { Advice, Health } from "./advice.ts";
import type { AskedChange, Compared, Contents, Data, Job, Metric, Options, Page, Pair, Progress, Query, Source, TraceInfo, ViewSpec, WhatIf } from "./api.ts";
import type { AdviceNumber, KnownNumbers, NumberOfSlice, NumberSlices } from "./numbers.ts";
import { SqlError } from "./sql.ts";
import type { SqlPlace, SqlResult, SqlSchema } from "./sql.ts";
import { Turns } from "./turns.ts";

const TOKEN = new URLSearchParams(location.search).get("token");

function address(path: string, queryParameters: Record<string, string>): string {
  const url = new URL(path, new URL("api/", import.meta.url)); // here: in a frame it has no path
  for (const [name, value] of Object.entries(queryParameters)) url.searchParams.append(name, value);
  if (TOKEN !== null) url.searchParams.set("token", TOKEN);
  return url.href;
}

/** Asks the server to report unreadable traces in the response, not as a network error. */
const FROM_PAGE = { "Selftime-Page": "1" };

type Parameters = Record<string, string>;
type Failed = { error?: string; place?: SqlPlace | null };

interface How {
  signal?: AbortSignal;
  /** Whose answers are read one a frame. */
  turns?: Turns;
}

async function ask<T>(path: string, queryParameters: Parameters = {}, { signal, turns }: How = {}): Promise<T> {
  let answer: Response;
  try {
    answer = await fetch(address(path, queryParameters), { credentials: "same-origin", headers: FROM_PAGE, signal: signal ?? null });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new DataError("the server does not answer; is `selftime serve` still running?");
  }
  if (!answer.ok) throw new DataError(await told(answer));
  await turns?.next();
  const body = (await answer.json()) as T & Failed;
  if (body.error !== undefined && body.place !== undefined) throw new SqlError(body.error, body.place);
  if (body.error !== undefined) throw new DataError(body.error);
  return body;
}

/** The sentence in an error answer: `{"error": "..."}`. */
async function told(answer: Response): Promise<string> {
  try {
    const body = (await answer.json()) as { error?: string };
    if (body.error) return body.error;
  } catch {
    // not from us: a proxy, say
  }
  return `the server answered with status ${answer.status}`;
}

/** URL parameters of a view's query: options by name, others with a leading dot. */
export function queryParameters(trace: string, options: Options, query: Query): Record<string, string> {
  const found: Record<string, string> = { ".trace": trace };
  for (const [name, value] of Object.entries(options)) {
    if (value !== null) found[name] = String(value);
  }
  if (query.sort) found[".sort"] = query.sort;
  if (query.find) found[".find"] = query.find;
  if (query.where?.length) found[".where"] = JSON.stringify(query.where);
  if (query.from) found[".from"] = String(query.from);
  if (query.rows) found[".rows"] = String(query.rows);
  if (query.columns) found[".columns"] = query.columns.join(",");
  return found;
}

export class ServerData implements Data {
  readonly inline = false;
  readonly pair = null;
  /** Tiles of the timeline come while it moves. */
  readonly #tiles = new Turns();

  async traces(): Promise<TraceInfo[]> {
    return (await ask<{ traces: TraceInfo[] }>("traces")).traces;
  }

  async views(): Promise<ViewSpec[]> {
    return (await ask<{ views: ViewSpec[] }>("views")).views;
  }

  contents(trace: string, signal: AbortSignal): Promise<Contents> {
    return ask("contents", { ".trace": trace }, { signal });
  }

  async progress(trace: string): Promise<Progress | null> {
    return (await ask<{ progress: Progress | null }>("progress", { ".trace": trace })).progress;
  }

  page(trace: string, view: string, options: Options, query: Query): Promise<Page> {
    return ask(`view/${view}`, queryParameters(trace, options, query), view === "timeline" ? { turns: this.#tiles } : {});
  }

  advice(trace: string): Promise<Advice> {
    return ask("advice", { ".trace": trace });
  }

  numberSlices(trace: string, of: string): Promise<NumberSlices> {
    return ask("number_slices", { ".trace": trace, of });
  }

  numbers(trace: string): Promise<KnownNumbers<AdviceNumber>> {
    return ask("numbers", { ".trace": trace });
  }

  numbersOfSlice(trace: string, slice: number, compute: boolean): Promise<KnownNumbers<NumberOfSlice>> {
    return ask("numbers", { ".trace": trace, slice: String(slice), ...(compute ? { compute: "true" } : {}) });
  }

  health(trace: string): Promise<Health> {
    return ask("health", { ".trace": trace });
  }

  compare({ before, after }: Pair, metric: Metric | null): Promise<Compared> {
    return ask("compare", { ".trace": before, ".with": after, ...(metric ? { metric } : {}) });
  }

  job(trace: string): Promise<Job> {
    return ask("job", { ".trace": trace });
  }

  whatIf(trace: string, changes: readonly AskedChange[]): Promise<WhatIf> {
    return ask("what_if", { ".trace": trace, changes: JSON.stringify(changes) });
  }

  sqlSchema(trace: string): Promise<SqlSchema> {
    return ask("sql_schema", { ".trace": trace });
  }

  sql(trace: string, query: string, signal: AbortSignal): Promise<SqlResult> {
    return ask("sql", { ".trace": trace, query }, { signal });
  }

  queryTrack(trace: string, query: string, options: Options, rows: Query): Promise<Page> {
    return ask("sql_track", queryParameters(trace, { ...options, query }, rows), { turns: this.#tiles });
  }

  async rule(name: string): Promise<string> {
    return (await ask<{ text: string }>(`rule/${name}`)).text;
  }

  async source(trace: string, file: string, from: number, rows: number): Promise<Source | null> {
    const asked = { ".trace": trace, file, from: String(from), rows: String(rows) };
    return (await ask<{ source: Source | null }>("source", asked)).source;
  }

  csv(trace: string, view: string, options: Options, query: Query): string {
    return address(`view/${view}.csv`, queryParameters(trace, options, query));
  }
}
