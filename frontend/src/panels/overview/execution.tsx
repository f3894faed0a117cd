// The parts of the average step.

import { Stack } from "../../parts/charts/stack.tsx";
import { Swatch } from "../../parts/charts/stack.tsx";
import { STEP_PARTS } from "../../parts/steps/stepparts.ts";
import { link } from "../../route.ts";
import { text } from "../../units.ts";
import type { Figure } from "../../parts/figures/figures.ts";
import { Metric } from "../../parts/figures/metric.tsx";

export function Execution(props: { figures: readonly Figure[] }) {
  const { figures } = props;
  const parts = figures.filter((figure) => colourOf(figure.metric) !== null && (figure.value ?? 0) > 0);
  if (figures.length === 0) return <p class="muted">No step was found whose time could be split into parts.</p>;
  return (
    <>
      <Stack
        label="The average step"
        legend={false}
        parts={parts.map((figure) => ({
          label: figure.metric,
          colour: colourOf(figure.metric) ?? "other",
          size: figure.value ?? 0,
          text: figure.text ?? "",
          doc: figure.definition,
        }))}
      />
      <table class="figures">
        <thead>
          <tr><th scope="col">Category</th><th scope="col" class="number">Time a step</th><th scope="col" class="number">Share</th></tr>
        </thead>
        <tbody>{figures.filter(({ value }) => value !== 0).map((figure) => <Row key={figure.metric} figure={figure} />)}</tbody>
      </table>
    </>
  );
}

function Row(props: { figure: Figure }) {
  const { figure } = props;
  const colour = colourOf(figure.metric);
  const isWhole = figure.metric === "average step";
  return (
    <tr data-whole={isWhole}>
      <th scope="row">
        {colour !== null && <Swatch colour={colour} />}
        {figure.metric === "all communication" && <span class="no-swatch" />}
        <Metric figure={figure} />
      </th>
      <td class="number">{isWhole ? <a href={link("steps")}>{text(figure.value, "ns")}</a> : text(figure.value, "ns")}</td>
      <td class="number">{isWhole ? "" : text(figure.share, "ratio")}</td>
    </tr>
  );
}

/** The colour of a part of the step; null for times that overlap the parts. */
function colourOf(metric: string): string | null {
  return STEP_PARTS.find((part) => part.label === metric)?.colour ?? null;
}
