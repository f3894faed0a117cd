// The steps of a trace, from the view `steps`.

import type { Data } from "../../../data/api.ts";
import type { Step } from "../drawing/viewport.ts";
import { cellReader } from "../tiles/cell-reader.ts";

export async function loadSteps(data: Data, trace: string): Promise<Step[]> {
  const page = await data.page(trace, "steps", {}, { columns: ["step", "start", "host_time", "excess"] });
  const read = cellReader(page);
  return Array.from({ length: page.rows }, (_, row) => {
    const start = read.number("start", row);
    const excess = read.number("excess", row);
    const step = { number: read.number("step", row), start, end: start + (read.number("host_time", row) || 0) };
    return Number.isNaN(excess) ? step : { ...step, excess };
  });
}
