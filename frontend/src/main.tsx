// Starts the page, on a server, in a report, in TensorBoard or in a notebook.

import "./style.css";
import { render } from "preact";
import type { Data } from "./data/api.ts";
import { readReportData, InlineData } from "./data/inline.ts";
import { cachedData } from "./parts/data/remember.ts";
import { ServerData } from "./data/server.ts";
import { Shell } from "./shell/shell.tsx";
import { applyStoredScheme } from "./shell/scheme.tsx";
import { openOuterFragment } from "./shell/tensorboard.ts";

async function start(): Promise<void> {
  applyStoredScheme();
  openOuterFragment();
  const inside = await readReportData();
  const data: Data = inside === null ? new ServerData() : new InlineData(inside);
  const root = document.createElement("div");
  root.id = "selftime";
  document.body.append(root);
  render(<Shell data={cachedData(data)} />, root);
}

await start();
