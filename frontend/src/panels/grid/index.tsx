// Any view as a table, drawn from its declared columns alone.

import type { Panel } from "../panel.ts";
import { Grid } from "./grid.tsx";

export function grid(view: string, title: string, group: Panel["group"]): Panel {
  return { name: view, title, group, component: (props) => <Grid {...props} view={view} /> };
}
