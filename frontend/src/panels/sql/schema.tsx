// What a query can read: tables and views with their columns; a click writes a name into the query.

import { useState } from "preact/hooks";
import type { SqlColumn, SqlRelation } from "../../data/sql.ts";
import { TraceText } from "../../parts/text/trace-text.tsx";
import { countText } from "../../units.ts";

interface Props {
  relations: readonly SqlRelation[];
  onInsert: (text: string) => void;
}

const GROUPS = [["table", "Tables of the trace"], ["view", "Views"]] as const;

export function Schema(props: Props) {
  const [find, setFind] = useState("");
  const found = matching(props.relations, find.trim().toLowerCase());
  return (
    <aside class="sql-schema" aria-label="Tables and views">
      <input
        type="search" aria-label="Find a table, a view or a column" placeholder="Find a table or column" value={find}
        spellcheck={false} onInput={(event) => setFind(event.currentTarget.value)}
      />
      <div class="sql-relations">
        {GROUPS.map(([kind, title]) => {
          const relations = found.filter((relation) => relation.kind === kind);
          return relations.length === 0 ? null : (
            <section key={kind} aria-label={title}>
              <h2>{title}</h2>
              {relations.map((relation) => (
                <Relation key={relation.name} relation={relation} onInsert={props.onInsert} isFound={isOfColumn(relation, find)} />
              ))}
            </section>
          );
        })}
        {found.length === 0 && <p class="muted">Nothing has that in its name.</p>}
      </div>
    </aside>
  );
}

/** Those with the word in their name, and those with it in the name of a column. */
function matching(relations: readonly SqlRelation[], word: string): SqlRelation[] {
  const has = (relation: SqlRelation) => relation.name.includes(word);
  return [
    ...relations.filter(has),
    ...relations.filter((one) => !has(one) && one.columns.some((column) => column.name.includes(word))),
  ];
}

/** Whether only a column of it has the searched word; it then stands open. */
function isOfColumn(relation: SqlRelation, find: string): boolean {
  const word = find.trim().toLowerCase();
  return word !== "" && !relation.name.includes(word);
}

function Relation(props: { relation: SqlRelation; isFound: boolean; onInsert: (text: string) => void }) {
  const { relation, onInsert, isFound } = props;
  const [isOpen, open] = useState(false);
  const isShown = isOpen || isFound;
  return (
    <div class="sql-relation" data-empty={relation.rows === 0}>
      <div class="sql-relation-head">
        <button type="button" class="quiet sql-open" aria-expanded={isShown} title={relation.doc} onClick={() => open(!isOpen)}>
          <span class="sql-twist" aria-hidden="true">{isShown ? "▾" : "▸"}</span>
          <span class="sql-name">{relation.name}</span>
          {relation.rows !== null && <span class="muted number">{relation.rows === 0 ? "no rows" : countText(relation.rows)}</span>}
        </button>
        <button type="button" class="quiet sql-insert" title={`Write ${relation.name}`} aria-label={`Write ${relation.name}`} onClick={() => onInsert(relation.name)}>+</button>
      </div>
      {isShown && (
        <div class="sql-columns">
          <p class="muted"><TraceText text={relation.doc} /></p>
          {relation.columns.map((column) => <ColumnLine key={column.name} column={column} onInsert={onInsert} />)}
        </div>
      )}
    </div>
  );
}

function ColumnLine(props: { column: SqlColumn; onInsert: (text: string) => void }) {
  const { column, onInsert } = props;
  return (
    <button type="button" class="quiet sql-column" onClick={() => onInsert(column.name)}>
      <span class="sql-name">{column.name}</span>
      <span class="sql-type">{typeText(column)}</span>
      <span class="sql-doc">{column.doc}</span>
    </button>
  );
}

const SAME_AS_TYPE: ReadonlySet<string> = new Set(["id", "name", "text", "sentence", "flag"]);

/** The type of a column with its unit, such as `integer, ns`. */
function typeText(column: SqlColumn): string {
  const unit = column.unit === "instant" ? "ns from the begin" : column.unit;
  const known = [column.type, ...(SAME_AS_TYPE.has(unit) ? [] : [unit]), ...(column.nullable ? ["or null"] : [])];
  return known.join(", ").replace(", or null", " or null");
}
