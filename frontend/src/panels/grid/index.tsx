// Any view as a table, drawn from its declared columns alone.

import "./style.css";
import "./drawer/style.css";
import type { Options } from "../../data/api.ts";
import { KEYS, type KeyLine } from "../../parts/controls/keys.tsx";
import type { Panel, PanelProps } from "../panel.ts";
import { Grid } from "./grid.tsx";
import { KIND } from "./query/kinds.tsx";
import { TraceText } from "../../parts/text/trace-text.tsx";
import { link } from "../../route.ts";
import { PANELS } from "../index.ts";
import { labelOf } from "./layout/columns.ts";

const LINES: KeyLine[] = [
  ["Arrows", "from cell to cell; up from the first row into the head"],
  ["PgUp, PgDn, Ctrl+Home, Ctrl+End", "through the rows"],
  ["Enter", "open the row; in the head, sort"],
  ["s, f", "sort by the column; how its values are distributed, and its filter"],
  ["Alt+←, Alt+→", "in the table: a narrower or wider column"],
  ["Ctrl+C, c", "copy the cell, copy the row"],
];

interface GridDefaults {
  options?: Options;
  /** The kind of rows to show unless the address asks for others. */
  kind?: string;
}

export function grid(view: string, title: string, group: Panel["group"], defaults: GridDefaults = {}): Panel {
  KEYS[view] = LINES;
  const { options = {}, kind } = defaults;
  const taken = kind === undefined ? [] : [KIND];
  return {
    name: view,
    title,
    group,
    component: (props) => <Grid {...props} view={view} title={title} defaults={options} kind={kind} taken={taken} />,
  };
}

KEYS["view"] = LINES;

/** Every view that there is, also those without a panel of their own. */
export const anyView: Panel = { name: "view", title: "Every table", group: "more", component: AnyView };

export const TAKEN = ["name"];

export function AnyView(props: PanelProps) {
  const name = props.params["name"];
  if (name === undefined) return <Views {...props} />;
  return <Grid {...props} view={name} title={labelOf(name)} taken={TAKEN} />;
}

function Views(props: PanelProps) {
  const panels = new Set(PANELS.map((panel) => panel.name));
  const views = [...props.views.values()].toSorted((a, b) => a.name.localeCompare(b.name));
  return (
    <section class="grid-views">
      <h1>Every table</h1>
      <p class="muted">
        Each is also a command, <code>selftime view NAME PATH</code>, and a method in Python, <code>trace.view("NAME")</code>.
      </p>
      <dl>
        {views.map((view) => (
          <div key={view.name}>
            <dt>
              <a href={link("view", { name: view.name })}>{labelOf(view.name)}</a>
              {panels.has(view.name) && <a class="grid-panel-link" href={link(view.name)}>panel</a>}
            </dt>
            <dd><TraceText text={view.title} /></dd>
          </div>
        ))}
      </dl>
    </section>
  );
}
