// The passes of a time: forward, backward, recomputation. A bar of them, and what its colours mean.

import { shareText, timeText } from "../../units.ts";
import { PASSES } from "./columns.ts";

interface PassShareProps {
  /** The time of each pass, and the time of which the pass is unknown. */
  passes: readonly number[];
  unknown?: number;
  /** The time that is the full width. */
  whole: number;
  share: number;
}

/** A bar with the row's share by pass. */
export function PassShare(props: PassShareProps) {
  const { passes, unknown = 0, whole } = props;
  const width = (time: number) => `${whole > 0 ? (100 * time) / whole : 0}%`;
  const title = PASSES.map((pass, at) => `${pass} ${timeText(passes[at] ?? 0)}`).join(", ");
  return (
    <span role="gridcell" class="tree-share" title={title}>
      <span class="tree-bar" aria-hidden="true">
        {PASSES.map((pass, at) => <i key={pass} class={`pass-${pass}`} style={{ width: width(passes[at] ?? 0) }} />)}
        {unknown > 0 && <i class="pass-unknown" style={{ width: width(unknown) }} />}
      </span>
      <span class="number">{shareText(props.share)}</span>
    </span>
  );
}

export function PassLegend() {
  return (
    <>
      {PASSES.map((pass) => <span key={pass} class="modules-pass"><i class={`pass-${pass}`} />{pass}</span>)}
    </>
  );
}
