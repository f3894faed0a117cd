// What a curve is of, its peak, and what it is at an instant.

import { plain } from "../../parts/text/plain.ts";
import { bytesText, instantText } from "../../units.ts";
import type { Band } from "./bands.ts";
import { bytesAt } from "./bands.ts";
import type { Curve } from "./curves.ts";
import { pointAt } from "./curves.ts";

export function told(curve: Curve, time: number): string {
  const point = pointAt(curve.times, time);
  const [allocated, reserved] = [curve.allocated[point], curve.reserved?.[point]];
  if (allocated === undefined) return `nothing recorded yet at ${instantText(time)}`;
  const parts = [`${bytesText(allocated)} ${curve.isPart ? "in the shown bands" : "allocated"}`];
  if (reserved !== undefined) {
    parts.push(`${bytesText(reserved)} reserved`, `${bytesText(reserved - allocated)} of it unused`);
  }
  return `${parts.join(", ")} at ${instantText(time)}`;
}

export function Caption(props: { curve: Curve; at: number | null; lit: Band | null; onPeak: () => void }) {
  const { curve, at, lit } = props;
  return (
    <figcaption>
      <strong>{plain(curve.title)}</strong>
      {curve.name !== null && <span class="muted memory-device" title={plain(curve.name)}>{plain(curve.name)}</span>}
      <span>
        <button type="button" class="quiet memory-peak" title="What is allocated at the peak (p)" onClick={props.onPeak}>
          {curve.isPart && "shown: "}peak {curve.atLeast && "at least "}{bytesText(curve.peak.allocated)}
        </button>
        {curve.capacity !== null && <span class="muted"> of {bytesText(curve.capacity)}</span>}
      </span>
      {curve.atLeast && !curve.isPart && <span class="muted memory-note" title="What was allocated before the recording is not known">excludes memory allocated before the recording</span>}
      {curve.reserved !== null && (
        <span class="memory-legend muted"><i class="allocated" /> allocated <i class="reserved" /> reserved</span>
      )}
      <span class="memory-told number">
        {lit !== null && at !== null && <strong>{plain(lit.label)} {bytesText(bytesAt(lit, at))} of </strong>}
        {at !== null && told(curve, at)}
      </span>
    </figcaption>
  );
}
