// The two recordings that lie side by side.

import type { Pair } from "../../api.ts";
import type { Whole } from "../../parts/whole.ts";

export interface Sides extends Pair {
  stepsBefore: Whole;
  stepsAfter: Whole;
}
