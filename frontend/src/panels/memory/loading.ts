// What the chart shows, loaded: curves of the whole recording, finer ones of a zoomed span, and bands.

import type { Data } from "../../data/api.ts";
import type { Span } from "../../draw/span.ts";
import { useQuery } from "../../parts/data/asking.tsx";
import type { FullTable } from "../../parts/data/full-table.ts";
import { loadTable } from "../../parts/data/full-table.ts";
import type { PanelProps } from "../panel.ts";
import type { Band, Grouping } from "./bands.ts";
import { bandsOf, GROUPINGS, isVague } from "./bands.ts";
import type { Curve } from "./curves.ts";
import { curvesOf, ofDevice, windowOf } from "./curves.ts";
import type { Versus } from "./differences.ts";
import { sideOf } from "./differences.ts";

/** Points of a window, of which a sixth at least is in sight. */
export const POINTS = 4_000;

export type Curves = ReadonlyMap<string, Curve>;
export interface Stack {
  by: Grouping;
  bands: ReadonlyMap<string, Band[]>;
}

/** Options for what is in sight; none for the whole recording, which is all that a report has. */
function optionsOf(data: Data, span: Span, limits: Span): Record<string, number> {
  const window = data.inline ? null : windowOf(span, limits);
  return window === null ? {} : { start: window.from, end: window.to, points: POINTS };
}

/** The curves of a zoomed span in detail, with the peak of all; null if there is nothing finer. */
export function useFiner(props: PanelProps, curves: readonly Curve[], span: Span, limits: Span): Curves | null {
  const { data, trace } = props;
  const options = optionsOf(data, span, limits);
  const wanted = options["end"] !== undefined;
  const ask = async () => {
    if (!wanted) return null;
    const detailed = curvesOf(await loadTable(data, trace.id, "memory_curve", options));
    const peaks = new Map(curves.map((curve) => [curve.key, curve.peak]));
    return new Map(detailed.map((curve) => [curve.key, { ...curve, peak: peaks.get(curve.key) ?? curve.peak }]));
  };
  const asked = useQuery(ask, JSON.stringify([trace.id, options]));
  return wanted && asked.state === "here" && !asked.stale ? asked.value : null;
}

/** The bands of the curve; null without any, or as long as they are not loaded. */
export function useBands(props: PanelProps, curve: Curve, span: Span, limits: Span): Stack | null {
  const { data, trace, params } = props;
  const options = optionsOf(data, span, limits);
  const wanted = params["stack"];
  const key = JSON.stringify([trace.id, wanted, options, wanted === undefined && curve.key]);
  const asked = useQuery(() => loadStack(data, trace.id, options, wanted, curve), key);
  return wanted === "no" || asked.state !== "here" ? null : asked.value;
}

/** The bands by the chosen word; without one by category, or by line where few categories are known. */
export async function loadStack(
  data: Data, trace: string, options: Record<string, number>, wanted: string | undefined, curve: Curve,
): Promise<Stack | null> {
  if (wanted === "no") return null;
  const load = async (by: Grouping): Promise<Stack> => ({
    by, bands: bandsOf(await loadTable(data, trace, "memory_holders", { ...options, by }), by),
  });
  const chosen = GROUPINGS.find((known) => known === wanted);
  const first = await load(chosen ?? "category");
  const isTold = (stack: Stack) => !isVague(stack.bands.get(curve.key) ?? [], curve.peak.time);
  if (chosen !== undefined || isTold(first)) return first;
  const lines = await load("line");
  return isTold(lines) ? lines : first;
}

/** The table of a view of what the shown memory is compared with: another instant, or another trace. */
export function useOtherSide(
  { data, trace, curve, by, versus }: PanelProps & { curve: Curve; by: string; versus: Versus },
  view: string,
): ReturnType<typeof useQuery<FullTable>> {
  const side = sideOf(versus, trace.id);
  const options = { by, ...side.options };
  const where = ofDevice(curve);
  return useQuery(() => loadTable(data, side.trace, view, options, { where }), JSON.stringify([side.trace, view, options, where]));
}
