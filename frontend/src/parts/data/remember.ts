// Caches responses, so that going back to a panel is immediate.

import type { Data, Page, TraceInfo } from "../../data/api.ts";

const MOST_ANSWERS = 64;
/** Largest cached response, in bytes. */
const MOST_CELLS = 50_000;

/** Data whose answers are kept for as long as the traces stay what they are. */
export function cachedData(data: Data): Data {
  const answers = new Map<string, Promise<unknown>>();
  let known = "";

  const forget = (key: string, answer: Promise<unknown>) => {
    if (answers.get(key) === answer) answers.delete(key);
  };
  function once<T>(words: readonly unknown[], ask: () => Promise<T>): Promise<T> {
    const key = JSON.stringify(words);
    const answer = (answers.get(key) as Promise<T> | undefined) ?? ask();
    answers.delete(key);
    answers.set(key, answer); // the latest asked for stands last
    const [oldest] = answers.keys();
    if (answers.size > MOST_ANSWERS && oldest !== undefined) answers.delete(oldest);
    answer.catch(() => forget(key, answer));
    return answer;
  }
  function page(...words: Parameters<Data["page"]>): Promise<Page> {
    const answer = once(["page", ...words], () => data.page(...words));
    const key = JSON.stringify(["page", ...words]);
    answer.then(
      ({ rows, columns }) => {
        if (rows * Object.keys(columns).length > MOST_CELLS) forget(key, answer);
      },
      () => undefined, // whoever asked is told
    );
    return answer;
  }
  async function traces(): Promise<TraceInfo[]> {
    const found = await data.traces();
    const now = JSON.stringify(found.map(({ id, bytes, modified, job }) => [id, bytes, modified, job]));
    if (now !== known) answers.clear();
    known = now;
    return found;
  }
  return {
    inline: data.inline,
    pair: data.pair,
    traces,
    page,
    contents: (trace, signal) => data.contents(trace, signal), // whoever asks may leave
    progress: (trace) => data.progress(trace),
    views: () => once(["views"], () => data.views()),
    advice: (trace) => once(["advice", trace], () => data.advice(trace)),
    health: (trace) => once(["health", trace], () => data.health(trace)),
    compare: (...words) => once(["compare", ...words], () => data.compare(...words)),
    job: (trace) => once(["job", trace], () => data.job(trace)),
    whatIf: (trace, changes) => once(["whatIf", trace, JSON.stringify(changes)], () => data.whatIf(trace, changes)),
    sqlSchema: (trace) => once(["sqlSchema", trace], () => data.sqlSchema(trace)),
    sql: (...words) => data.sql(...words),
    queryTrack: (...words) => data.queryTrack(...words),
    rule: (name) => once(["rule", name], () => data.rule(name)),
    source: (...words) => once(["source", ...words], () => data.source(...words)),
    csv: (...words) => data.csv(...words),
  };
}
