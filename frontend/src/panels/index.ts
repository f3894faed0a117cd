// All panels, in the order of the navigation, and which of them come first.

import { answer } from "./answer/index.tsx";
import { compare } from "./compare/index.tsx";
import { criticalPath } from "./critical-path/index.tsx";
import { distributed } from "./distributed/index.tsx";
import { flame } from "./flame/index.tsx";
import { anyView, grid } from "./grid/index.tsx";
import { lines } from "./lines/index.tsx";
import { memory } from "./memory/index.tsx";
import { modules } from "./modules/index.tsx";
import { overview } from "./overview/index.tsx";
import type { Panel } from "./panel.ts";
import { roofline } from "./roofline/index.tsx";
import { run } from "./run/index.tsx";
import { sql } from "./sql/index.tsx";
import { steps } from "./steps/index.tsx";
import { timeline } from "./timeline/index.tsx";
import { whatif } from "./whatif/index.tsx";

export const PANELS: readonly Panel[] = [
  answer,
  whatif,
  run,
  overview,
  timeline,
  grid("operators", "Operators", "time", { kind: "operator" }),
  steps,
  flame,
  grid("account", "Account of the step", "time"),
  grid("annotations", "Annotations", "time"),
  grid("occurrences", "Slices", "time", { options: { top: 10_000 } }),
  lines,
  modules,
  grid("workers", "Loader workers", "time"),
  grid("worker_batches", "Worker batches", "time"),
  grid("run_steps", "Steps of the run", "time"),
  grid("run_lines", "Lines of the run", "time"),
  grid("idle", "Idle", "device", { options: { by: "cause" } }),
  grid("kernels", "Kernels", "device"),
  roofline,
  grid("launches", "Launches", "device"),
  grid("syncs", "Syncs", "device"),
  grid("copies", "Copies", "device"),
  grid("overlap", "Overlap", "device"),
  distributed,
  grid("ranks", "Ranks", "job"),
  grid("stragglers", "Stragglers", "job"),
  grid("arrivals", "Arrivals", "job"),
  grid("collective_waits", "Waits in collectives", "job"),
  grid("job_what_if", "What if of the job", "job"),
  grid("collectives", "Collectives", "job"),
  criticalPath,
  grid("job_path", "Path across ranks", "job"),
  grid("imbalance", "Imbalance", "job"),
  memory,
  grid("memory_operators", "Memory by operator", "memory"),
  grid("memory_events", "Memory events", "memory"),
  compare,
  grid("health", "Health", "more"),
  sql,
  anyView,
];

/** The panels that answer most questions, in their order; the others are below *All tables*. */
const FIRST: readonly string[] = [
  "answer",
  "run",
  "overview",
  "timeline",
  "operators",
  "kernels",
  "flame",
  "lines",
  "memory",
  "distributed",
  "compare",
];

/** The panels that come first, and all others. */
export function inOrder(panels: readonly Panel[]): { first: Panel[]; others: Panel[] } {
  return {
    first: FIRST.flatMap((name) => panels.filter((panel) => panel.name === name)),
    others: panels.filter((panel) => !FIRST.includes(panel.name)),
  };
}
