// Any view by its name, and the list of all: a new view is here without a change to the page.

import { Sentence } from "../../parts/lacking.tsx";
import { link } from "../../route.ts";
import { PANELS } from "../index.ts";
import type { PanelProps } from "../panel.ts";
import { labelOf } from "./columns.ts";
import { Grid } from "./grid.tsx";

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
      <h1>All tables</h1>
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
            <dd><Sentence text={view.title} /></dd>
          </div>
        ))}
      </dl>
    </section>
  );
}
