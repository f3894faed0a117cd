// The name of a figure: its meaning where it is pointed at, a link to where it is explained.

import { plain } from "../../parts/plain.ts";
import { link } from "../../route.ts";
import type { Figure } from "./figures.ts";
import { explainedBy } from "./places.ts";

/** Names that say too little where no section stands before them. */
const NAMES: Readonly<Record<string, string>> = { found: "steps found", counted: "steps counted" };

export function Metric(props: { figure: Figure }) {
  const { metric, definition } = props.figure;
  const panel = explainedBy(metric);
  const words = NAMES[metric] ?? plain(metric);
  return panel === null
    ? <span title={plain(definition)}>{words}</span>
    : <a href={link(panel)} title={plain(definition)}>{words}</a>;
}
