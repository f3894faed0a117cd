// The interface of a panel; panels are registered in `index.ts`.

import type { ComponentType } from "preact";
import type { Data, TraceInfo, ViewSpec } from "../data/api.ts";

export interface PanelProps {
  data: Data;
  trace: TraceInfo;
  traces: TraceInfo[];
  views: ReadonlyMap<string, ViewSpec>;
  params: Readonly<Record<string, string>>;
}

export interface Panel {
  /** Its address: `#/name`. */
  name: string;
  title: string;
  group: "answer" | "time" | "code" | "memory" | "device" | "job" | "more";
  component: ComponentType<PanelProps>;
  /** The view without whose data it has nothing to show; by default the one of its name. */
  view?: string;
  /** Why it has nothing to show for these traces, in a sentence; empty if it has something. */
  missing?: (traces: readonly TraceInfo[]) => string;
  /** Whether only a server can answer it; a report does not list it. */
  needsServer?: true;
}
