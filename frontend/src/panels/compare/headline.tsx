// Step time of the two, and whether the difference is one.

import type { Whole } from "../../parts/whole.ts";
import { fixed, shareText, timeText } from "../../units.ts";
import { median, stepsOf, verdict } from "./merging.ts";

export function Headline(props: { a: Whole; b: Whole }) {
  const { a, b } = props;
  const found = verdict(a, b);
  const [stepsA, stepsB] = [stepsOf(a), stepsOf(b)];
  if (found === null) {
    return <p class="compare-headline muted">Step times cannot be compared: one of the recordings has no step that counts.</p>;
  }
  const window = stepsA.found === 0 || stepsB.found === 0;
  return (
    <div class="compare-headline">
      <p>
        <strong>{timeText(found.a)} → {timeText(found.b)}</strong>
        <span class="muted"> {window ? "recorded" : "a step"}: </span>
        <Words {...found} />
      </p>
      <p class="muted">
        {window
          ? "One of the recordings does not say where a step begins: what is compared is all of it."
          : `Medians of the steps that count: ${stepsA.counted} of ${stepsA.found} in A, ${stepsB.counted} of ${stepsB.found} in B.`}
        {" "}<Side name="device time" a={median(a, "device_time")} b={median(b, "device_time")} />
        {" "}<Side name="host time" a={median(a, "host_time")} b={median(b, "host_time")} />
      </p>
    </div>
  );
}

function Words(props: { a: number; b: number; withinSpread: boolean | null }) {
  const { a, b, withinSpread } = props;
  if (withinSpread === true) return <span>no difference beyond what steps differ among themselves</span>;
  const words = b < a ? "faster" : b > a ? "slower" : "the same";
  const times = a > 0 && b > 0 ? Math.max(a, b) / Math.min(a, b) : 1;
  return (
    <>
      <span class={b < a ? "compare-less" : "compare-more"}>
        B is {a === 0 || b === a ? words : times >= 1.5 ? `${fixed(times, 2)} times as ${b < a ? "fast" : "slow"}` : `${shareText(Math.abs(b - a) / a)} ${words}`}
      </span>
      {withinSpread === null && <span class="muted"> (too few steps to tell how sure that is)</span>}
    </>
  );
}

function Side(props: { name: string; a: number | null; b: number | null }) {
  if (props.a === null || props.b === null) return null;
  return <span class="compare-side">{props.name} {timeText(props.a)} → {timeText(props.b)}</span>;
}
