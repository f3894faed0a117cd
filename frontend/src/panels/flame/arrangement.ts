// How the flame graph is arranged, and what is asked of the view `flame` for it (pure).

import type { Options } from "../../data/api.ts";
import type { PanelProps } from "../panel.ts";

export type Arrangement = "top_down" | "bottom_up" | "sandwich" | "time";

export const ARRANGEMENTS: readonly (readonly [Arrangement, string, string])[] = [
  ["top_down", "top down", "from callers to callees"],
  ["bottom_up", "bottom up", "self times first, their callers below"],
  ["sandwich", "sandwich", "callers above and callees below one name"],
  ["time", "in time", "as it happened within one step, by thread"],
];

type Params = PanelProps["params"];

export function arrangementOf(params: Params): Arrangement {
  return ARRANGEMENTS.find(([known]) => known === params["tree"])?.[0] ?? "top_down";
}

/** Which time is summed; in order of time that of the host, as it is what passes. */
export function metricOf(params: Params, isReport: boolean): string {
  const usual = arrangementOf(params) === "time" && !isReport ? "host" : "auto";
  return params["metric"] ?? usual;
}

/** Another table numbers its nodes anew, so the focus goes. */
export const AFRESH = { focus: undefined, at: undefined, detail: undefined };

/** Without the line whose function is between callers and callees. */
const OF_NOTHING = { file: undefined, line: undefined, function: undefined };

/** The options that all arrangements share, so that their times agree. */
export function sharedOptions(params: Params, isReport: boolean): Options {
  return {
    metric: metricOf(params, isReport),
    by: params["by"] ?? "stack",
    thread: params["thread"] ?? "",
    counted: params["counted"] === "true",
  };
}

/** The least share of a node of its own. */
export function detailOf(params: Params): number {
  return Number(params["detail"] ?? 0.001) || 0.001;
}

/** The parameters of the sandwich of a name; the time that is shown stays the same. */
export function sandwichOf(params: Params, name: string, kind: string): Record<string, string | undefined> {
  const metric = arrangementOf(params) === "time" ? metricOf(params, false) : params["metric"];
  return { ...AFRESH, ...OF_NOTHING, tree: "sandwich", of: name, kind: kind || undefined, metric };
}

/** A step of the program, as the view `steps` has it. */
export interface Step {
  number: number;
  counted: boolean;
  time: number;
}

/** The step that stands for all: of those that count the one with the median time. */
export function typicalStep(steps: readonly Step[]): Step | undefined {
  const counted = steps.filter((step) => step.counted);
  const among = (counted.length > 0 ? counted : steps).toSorted((a, b) => a.time - b.time);
  return among[(among.length - 1) >> 1];
}
