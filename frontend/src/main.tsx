// The start of the page, wherever it is mounted: served, in a report, TensorBoard or a notebook.

import "./style.css";
import { render } from "preact";
import type { Data } from "./api.ts";
import { carried, InlineData } from "./inline.ts";
import { remembering } from "./parts/remember.ts";
import { ServerData } from "./server.ts";
import { Shell } from "./shell.tsx";
import { applyStored } from "./shell/scheme.tsx";

async function start(): Promise<void> {
  applyStored();
  const inside = await carried();
  const data: Data = inside === null ? new ServerData() : new InlineData(inside);
  const root = document.createElement("div");
  root.id = "selftime";
  document.body.append(root);
  render(<Shell data={remembering(data)} />, root);
}

await start();
