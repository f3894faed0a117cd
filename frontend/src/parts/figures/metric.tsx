// The name of a metric, with a tooltip and a link to the panel that explains it.

import { plain } from "../text/plain.ts";
import { link } from "../../route.ts";
import type { Figure } from "./figures.ts";

export function Metric(props: { figure: Figure }) {
  const { metric, name, definition } = props.figure;
  const panel = explainedBy(metric);
  const words = plain(name);
  return panel === null
    ? <span title={plain(definition)}>{words}</span>
    : <a href={link(panel)} title={plain(definition)}>{words}</a>;
}

const PANELS: Readonly<Record<string, string>> = {
  // of a step
  "found": "steps",
  "counted": "steps",
  "idle launches": "launches",
  "bound by": "answer",
  // of its parts
  "average step": "steps",
  "kernel": "kernels",
  "memcpy": "copies",
  "memset": "copies",
  "communication": "overlap",
  "all communication": "overlap",
  "runtime": "launches",
  "data loading": "annotations",
  "cpu": "operators",
  "other": "timeline",
  // of a device
  "busy": "overlap",
  "kernel busy": "kernels",
  "compute busy": "overlap",
  "SM efficiency": "kernels",
  "occupancy": "kernels",
  "occupancy known": "kernels",
  "tensor cores": "kernels",
  "no tensor cores": "kernels",
  "tensor cores unknown": "kernels",
};

/** The panel that explains a metric; null if none. */
export function explainedBy(metric: string): string | null {
  return PANELS[metric] ?? null;
}
