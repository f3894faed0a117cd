// Any view as a table, drawn from its declared columns alone.

import "./style.css";
import "./drawer/style.css";
import type { Options } from "../../api.ts";
import { KEYS } from "../../parts/keys.tsx";
import type { KeyLine } from "../../parts/keys.tsx";
import type { Panel } from "../panel.ts";
import { Grid } from "./grid.tsx";
import { AnyView } from "./more.tsx";

const LINES: KeyLine[] = [
  ["Arrows", "from cell to cell; up from the first row into the head"],
  ["PgUp, PgDn, Ctrl+Home, Ctrl+End", "through the rows"],
  ["Enter", "open the row; in the head, sort"],
  ["s, f", "sort by the column, filter it"],
  ["Alt+←, Alt+→", "in the table: a narrower or wider column"],
  ["Ctrl+C, c", "copy the cell, copy the row"],
];

export function grid(view: string, title: string, group: Panel["group"], defaults: Options = {}): Panel {
  KEYS[view] = LINES;
  return {
    name: view,
    title,
    group,
    component: (props) => <Grid {...props} view={view} title={title} defaults={defaults} />,
  };
}

KEYS["view"] = LINES;

/** Every view that there is, also those without a panel of their own. */
export const anyView: Panel = { name: "view", title: "All tables", group: "more", component: AnyView };
