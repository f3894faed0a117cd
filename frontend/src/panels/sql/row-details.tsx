// All of an opened row, with the way to the timeline where it has a start and a duration.

import type { Cell } from "../../data/api.ts";
import type { SqlColumn } from "../../data/sql.ts";
import { valueAt } from "../../data/table.ts";
import { timelineLink, wordsOf } from "../grid/cell.tsx";
import type { Found } from "../grid/query/rows.ts";

export function RowDetails(props: { found: Found; columns: readonly SqlColumn[]; onClose: () => void }) {
  const { found, columns, onClose } = props;
  const valueOf = (name: string): Cell => {
    const values = found.page.columns[name];
    return values === undefined ? null : valueAt(values, found.at);
  };
  const [start, duration] = [valueOf("start"), valueOf("duration")];
  return (
    <aside class="sql-row" aria-label="Row">
      <p class="sql-row-head">
        {typeof start === "number" && typeof duration === "number" && (
          <a href={timelineLink(start, duration, valueOf("id"))}>Show in the timeline</a>
        )}
        <button type="button" class="quiet" aria-label="Close the row" onClick={onClose}>×</button>
      </p>
      <dl>
        {columns.map((column) => (
          <div key={column.name}>
            <dt>{column.name}</dt>
            <dd>{wordsOf(column, valueOf(column.name))}</dd>
          </div>
        ))}
      </dl>
    </aside>
  );
}
