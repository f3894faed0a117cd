// One fact about the trace under its heading; its place is kept while it loads.

import type { ComponentChildren } from "preact";
import { QueryResult } from "../../../parts/data/asking.tsx";
import type { QueryState } from "../../../parts/data/asking.tsx";

export function Fact<T>(props: {
  name: string;
  title: string;
  /** What the numbers are; after the title. */
  what?: string | undefined;
  /** The address of all of it. */
  all: string;
  asked: QueryState<T>;
  children: (value: T) => ComponentChildren;
}) {
  const { name, title, what, all, asked, children } = props;
  return (
    <section class="fact" data-fact={name} data-waits={asked.state === "waiting"}>
      <h2><a href={all}>{title}</a> {what !== undefined && <span class="answer-basis">{what}</span>}</h2>
      <QueryResult asked={asked} what={title.toLowerCase()}>{children}</QueryResult>
    </section>
  );
}
