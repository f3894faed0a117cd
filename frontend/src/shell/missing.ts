// Why a panel has nothing to show for a trace.

import type { Contents, TraceInfo } from "../data/api.ts";
import type { Panel } from "../panels/panel.ts";
import { plain } from "../parts/text/plain.ts";

/** A sentence for the reader; empty if the panel has something, or that is not known. */
export function missingIn(panel: Panel, contents: Contents | null, traces: readonly TraceInfo[]): string {
  const own = panel.missing?.(traces) ?? "";
  const lacks = contents?.lacks[panel.view ?? panel.name] ?? [];
  return own || (lacks.length > 0 ? `Not in this recording: ${plain(lacks.join("; "))}.` : "");
}
