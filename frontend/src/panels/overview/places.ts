// Where a number of the overview is explained: the panel that shows what it is made of.

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

/** The panel, by the metric as the view `overview` names it; null where none says more. */
export function explainedBy(metric: string): string | null {
  return PANELS[metric] ?? null;
}
