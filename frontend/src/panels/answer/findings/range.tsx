// A saving as a bar on a scale shared by all findings: a line up to the upper bound, the interval as a
// band, the estimate as a tick. The scale begins at 0: what may be a loss is told in the text.

import "./range.css";
import type { Saving } from "../../../data/advice.ts";
import { millisecondsText } from "../../../units.ts";

export function RangeBar(props: { saving: Saving; text: string; scale: number }) {
  const { saving, text, scale } = props;
  if (scale <= 0 || (saving.estimate_ms === null && saving.upper_ms === null)) {
    return <span class="range" data-unknown="true">unknown</span>;
  }
  const at = (value: number) => `${(100 * value) / scale}%`;
  const { estimate_ms: estimate, low_ms: low, high_ms: high, upper_ms: upper } = saving;
  const most = upper === null ? "" : `\nat most ${millisecondsText(upper)}`;
  return (
    <span class="range" role="img" aria-label={text} title={text + most}>
      {upper !== null && <i class="range-upper" style={{ width: at(upper) }} />}
      {low !== null && high !== null && (
        <i class="range-band" style={{ left: at(Math.max(low, 0)), width: at(high - Math.max(low, 0)) }} />
      )}
      {estimate !== null && <i class="range-tick" style={{ left: at(estimate) }} />}
    </span>
  );
}

/** The ends of the scale, and its legend. */
export function RangeScale(props: { scale: number }) {
  if (props.scale <= 0) return null;
  return (
    <div class="range-scale" aria-hidden="true">
      <span class="range-key">
        <i class="range-tick" /> estimate <i class="range-band" /> likely <i class="range-upper" /> at most
      </span>
      <span class="range-ends"><span>0</span><span>{millisecondsText(props.scale)} a step</span></span>
    </div>
  );
}
