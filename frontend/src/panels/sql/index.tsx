// Queries in SQL: an editor, what can be asked beside it, and the result as a table or a chart.

import "./style.css";
import { useEffect, useRef, useState } from "preact/hooks";
import type { SqlExample, SqlSchema } from "../../data/sql.ts";
import { KEYS } from "../../parts/controls/keys.tsx";
import { Empty, QueryResult, useQuery } from "../../parts/data/asking.tsx";
import { change } from "../../route.ts";
import type { Panel, PanelProps } from "../panel.ts";
import { Editor, type EditorHandle } from "./editor.tsx";
import { Examples, ExampleMenu } from "./examples.tsx";
import { Failure, Running } from "./progress.tsx";
import { Result } from "./result.tsx";
import { useSql } from "./running.ts";
import { Schema } from "./schema.tsx";

export const sql: Panel = { name: "sql", title: "SQL", group: "more", component: SqlPanel, needsServer: true };

KEYS["sql"] = [
  ["Ctrl+Enter", "run the query"],
  ["Ctrl+Space", "complete the word; arrows choose, Tab takes it"],
  ["Esc", "close the completions; then cancel the query"],
];

const NOT_IN_REPORT =
  "A report holds tables and nothing that answers queries. `selftime serve` shows this page with it, and " +
  "`selftime sql` answers in a terminal.";

function SqlPanel(props: PanelProps) {
  const { data, trace } = props;
  const asked = useQuery(() => data.sqlSchema(trace.id), trace.id);
  if (data.inline) return <Empty title="Not in this report" text={NOT_IN_REPORT} />;
  return (
    <QueryResult asked={asked} what="what can be asked">
      {(schema) => <Queries {...props} schema={schema} />}
    </QueryResult>
  );
}

/** Parameters of the result, which another query does not keep. */
const OF_RESULT = ["sort", "find", "where", "cols", "widths", "row", "chart"] as const;

function Queries(props: PanelProps & { schema: SqlSchema }) {
  const { data, trace, params, schema } = props;
  const query = params["q"] ?? "";
  const [draft, setDraft] = useState(query);
  useEffect(() => setDraft(query), [query]);
  const editor = useRef<EditorHandle>(null);
  const asked = useSql(data, trace.id, query);
  const run = (text: string, chart = "") => {
    if (text.trim() === "") return;
    if (text === query && chart === "") return asked.again();
    const forgotten = text === query ? {} : Object.fromEntries(OF_RESULT.map((name) => [name, undefined]));
    change({ ...forgotten, q: text, ...(chart === "" ? {} : { chart }) }, { replace: false });
  };
  const ask = (example: SqlExample) => run(example.query, example.chart);
  const failed = asked.state === "failed" && draft === query ? asked.place : null;
  return (
    <section class="sql">
      <header class="sql-head">
        <h1>SQL</h1>
        <p class="muted">
          Every table of the trace and every view, in the SQL of Polars. A column named <code>…_ns</code> or{" "}
          <code>…_bytes</code> is written with its unit.
        </p>
      </header>
      <div class="sql-asking">
        <Editor
          handle={editor} value={draft} relations={schema.relations} wrong={failed}
          onChange={setDraft} onRun={() => run(draft)} onEscape={asked.cancel}
        />
        <div class="sql-actions">
          <button type="button" class="sql-run" disabled={draft.trim() === ""} onClick={() => run(draft)}>
            Run <kbd aria-hidden="true">Ctrl+Enter</kbd>
          </button>
          {asked.state === "running" && <button type="button" onClick={asked.cancel}>Cancel</button>}
          <ExampleMenu examples={schema.examples} onChoose={ask} />
          {asked.state === "running" && <Running since={asked.since} />}
        </div>
        {asked.state === "failed" && <Failure {...asked} onPlace={(place) => editor.current?.select(place)} isHere={failed !== null} />}
      </div>
      <Schema relations={schema.relations} onInsert={(text) => editor.current?.insert(text)} />
      <div class="sql-answer">
        {asked.result
          ? <Result result={asked.result} params={params} isStale={asked.state === "running"} />
          : asked.state === "idle" && <Examples examples={schema.examples} onChoose={ask} />}
      </div>
    </section>
  );
}
