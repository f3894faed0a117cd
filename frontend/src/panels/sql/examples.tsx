// Questions to begin with: cards while nothing is asked, a menu afterwards.

import type { SqlExample } from "../../data/sql.ts";

interface Props {
  examples: readonly SqlExample[];
  onChoose: (example: SqlExample) => void;
}

export function Examples(props: Props) {
  return (
    <section class="sql-examples" aria-label="Examples">
      <h2>Begin with a question</h2>
      <ul>
        {props.examples.map((example) => (
          <li key={example.question}>
            <button type="button" onClick={() => props.onChoose(example)}>
              <span>{example.question}</span>
              <code>{example.query.replaceAll("\n", " ")}</code>
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}

export function ExampleMenu(props: Props) {
  return (
    <select
      aria-label="Examples"
      value=""
      onChange={(event) => {
        const chosen = props.examples[Number(event.currentTarget.value)];
        event.currentTarget.value = "";
        if (chosen !== undefined) props.onChoose(chosen);
      }}
    >
      <option value="" hidden>Examples</option>
      {props.examples.map((example, at) => <option key={example.question} value={at}>{example.question}</option>)}
    </select>
  );
}
