// The two recordings that lie side by side.

import type { TraceInfo } from "../../api.ts";
import type { Whole } from "../../parts/whole.ts";

export interface Sides {
  a: TraceInfo;
  b: TraceInfo;
  stepsA: Whole;
  stepsB: Whole;
}
