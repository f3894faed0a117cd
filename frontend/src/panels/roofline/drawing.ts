// The picture of a roofline: points on two logarithmic axes, below the roofs of each dtype.

import type { ChartOption } from "../../parts/charts/chart.tsx";
import { text } from "../../units.ts";
import { decades, roofLine } from "./points.ts";
import type { Roofline, RooflinePoint } from "./points.ts";

type Colour = (name: string) => string;

/** Diameters of dots in pixels: the least, and of one that has all the time. */
const LEAST = 6;
const WHOLE = 64;

export function chartOf({ points, roofs }: Roofline, colour: Colour): ChartOption {
  const [left, right] = decades([...points.map((point) => point.intensity), ...roofs.map((roof) => roof.flops / roof.bytes)]);
  const [low, high] = decades([...points.map((point) => point.rate), ...roofs.map((roof) => roof.flops)]);
  const axis = (name: string, unit: "flops/s" | "flops/byte") => ({
    type: "log" as const,
    name,
    nameLocation: "middle" as const,
    splitLine: { lineStyle: { color: colour("line") } },
    axisLabel: { color: colour("muted"), hideOverlap: true, formatter: (value: number) => text(value, unit).replace(/\.0+(?= |$)/, "") },
  });
  return {
    grid: { left: 40, right: 120, top: 16, bottom: 32, containLabel: true },
    xAxis: { ...axis("operations for each byte", "flops/byte"), min: left, max: right, nameGap: 30 },
    yAxis: { ...axis("operations a second", "flops/s"), min: low, max: high, nameGap: 84 },
    series: [
      {
        type: "scatter",
        data: points.map((point) => [point.intensity, point.rate]),
        symbolSize: (_, { dataIndex }) => diameter(points[dataIndex]),
        itemStyle: { color: colour("operator"), opacity: 0.7, borderColor: colour("surface"), borderWidth: 1 },
        z: 3,
      },
      ...roofs.map((roof) => ({
        type: "line" as const,
        data: roofLine(roof, left, right),
        silent: true,
        symbol: "none",
        tooltip: { show: false },
        lineStyle: { color: colour("muted"), width: 1.5 },
        endLabel: {
          show: true,
          color: colour("muted"),
          lineHeight: 15,
          formatter: `${roof.dtype ?? "peak"}\n${text(roof.flops, "flops/s")}`,
        },
      })),
    ],
  };
}

/** The area is the share of the time. */
function diameter(point: RooflinePoint | undefined): number {
  return Math.max(LEAST, WHOLE * Math.sqrt(point?.share ?? 0));
}
