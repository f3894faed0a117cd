// What the command palette does besides going somewhere: copy, download, set.

import type { Data, TraceInfo, ViewSpec } from "../../data/api.ts";
import type { Panel } from "../../panels/panel.ts";
import { download } from "../../parts/controls/download.ts";
import { change, type Route } from "../../route.ts";
import { CHOICES, chooseScheme, TOLD } from "../scheme.tsx";
import type { Entry } from "./entries.ts";

export interface Around {
  data: Data;
  trace: TraceInfo;
  views: ReadonlyMap<string, ViewSpec>;
  panel: Panel | undefined;
  route: Route;
  /** Tells the reader in a few words what was done, or why it was not. */
  tell: (words: string) => void;
  openKeys: () => void;
}

export function actionEntries(around: Around): Entry[] {
  const { data, trace, tell, openKeys } = around;
  return [
    {
      id: "copy answer", kind: "action", title: "Copy the answer as Markdown",
      run: () => attempt(tell, async () => copyOrSave((await data.advice(trace.id)).said.markdown, tell)),
    },
    ...tableEntries(around),
    {
      id: "copy address", kind: "action", title: "Copy the address of what is shown",
      run: () => attempt(tell, async () => {
        await navigator.clipboard.writeText(location.href);
        tell("The address is copied.");
      }),
    },
    { id: "keys", kind: "action", title: "Show all keys", keys: "?", run: openKeys },
    ...CHOICES.map((choice): Entry => ({
      id: `scheme ${choice}`, kind: "setting", title: TOLD[choice], run: () => chooseScheme(choice),
    })),
  ];
}

/** What can be done with the table of the panel, if it shows one. */
function tableEntries({ views, panel, route }: Around): Entry[] {
  const main = document.querySelector("main");
  const csv = main?.querySelector<HTMLElement>("[data-csv]");
  const chooser = main?.querySelector<HTMLElement>("[data-columns]");
  const spec = views.get((panel?.name === "view" ? route.params["name"] : panel?.name) ?? "");
  const all = spec?.columns.map((column) => column.name);
  return [
    ...(csv ? [{ id: "csv", kind: "action", title: "Download the table as CSV", run: () => csv.click() } as const] : []),
    ...(chooser ? [{ id: "columns", kind: "setting", title: "Choose the columns of the table", run: () => chooser.click() } as const] : []),
    ...(all ? [{ id: "all columns", kind: "setting", title: "Show all columns of the table", run: () => change({ cols: all.join(",") }) } as const] : []),
  ];
}

function attempt(tell: Around["tell"], act: () => Promise<void>): void {
  act().catch((error: unknown) => tell(error instanceof Error ? error.message : String(error)));
}

async function copyOrSave(text: string, tell: Around["tell"]): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    tell("The answer is copied.");
  } catch {
    // without a secure address, or in a frame without the right, there is no clipboard
    download("selftime-answer.md", "text/markdown", text);
    tell("The answer is saved as a file.");
  }
}
