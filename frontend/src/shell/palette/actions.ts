// What the command palette does besides going somewhere: copy, download, set.

import type { Data, Page, TraceInfo, ViewSpec } from "../../data/api.ts";
import type { Panel } from "../../panels/panel.ts";
import { TAKEN } from "../../panels/grid/index.tsx";
import { csvOf } from "../../panels/grid/query/csv.ts";
import { queryOf, readState, stateParameters } from "../../panels/grid/query/state.ts";
import { download } from "../../parts/controls/download.ts";
import { change, type Route } from "../../route.ts";
import { CHOICES, chooseScheme, TOLD } from "../scheme.tsx";
import type { Entry } from "./entries.ts";

export interface Around {
  data: Data;
  trace: TraceInfo;
  views: ReadonlyMap<string, ViewSpec>;
  panel: Panel;
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

/** What can be done with the table of the panel, if it is one. */
function tableEntries({ data, trace, views, panel, route, tell }: Around): Entry[] {
  const name = panel.name === "view" ? route.params["name"] : panel.name;
  const spec = views.get(name ?? "");
  if (spec === undefined) return [];
  const taken = panel.name === "view" ? TAKEN : [];
  const set = (columns: string[] | null) => change(stateParameters({ columns }, spec, taken));
  return [
    {
      id: "csv", kind: "action", title: "Download the table as CSV",
      run: () => attempt(tell, async () => {
        const state = readState(route.params, spec, taken);
        const asked = [trace.id, spec.name, state.options, queryOf(state, spec.columns)] as const;
        const address = data.csv(...asked);
        if (address !== null) follow(address, `${spec.name}.csv`);
        else download(`${spec.name}.csv`, "text/csv", csvOf(spec.columns, [await data.page(...asked) satisfies Page]));
      }),
    },
    { id: "all columns", kind: "setting", title: "Show all columns of the table", run: () => set(spec.columns.map((column) => column.name)) },
    { id: "usual columns", kind: "setting", title: "Show the usual columns of the table", run: () => set(null) },
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

function follow(address: string, name: string): void {
  const anchor = document.createElement("a");
  anchor.href = address;
  anchor.download = name;
  anchor.click();
}
