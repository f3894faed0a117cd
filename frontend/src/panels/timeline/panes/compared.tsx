// The duration of what is selected beside that of what was kept for comparison.

import { shortName } from "../../../draw/names.ts";
import { plain } from "../../../parts/text/plain.ts";
import { change } from "../../../route.ts";
import type { TimelineController } from "../input/controller.ts";
import { keepReference, selectedOf } from "../input/reference.ts";
import type { Selected } from "../input/reference.ts";
import { alignmentText } from "../tracks/beside.ts";
import { comparedText } from "../tracks/comparison.ts";
import { BESIDE } from "../tracks/sources.ts";

export function Compared({ controller }: { controller: TimelineController }) {
  const own = selectedOf(controller);
  const { reference } = controller;
  if (own === null) return null;
  if (reference === null) {
    return (
      <button type="button" class="quiet" title="Compare the duration of the next selections with this one" onClick={() => keepReference(controller, own)}>
        Compare
      </button>
    );
  }
  const isSame = reference.key === own.key;
  return (
    <span class="timeline-compared" role="status">
      {isSame
        ? "Choose another slice or area to compare with this one."
        : comparedText(own.to - own.from, { name: named(reference, controller), duration: reference.to - reference.from })}
      {!isSame && <Align own={own} reference={reference} controller={controller} />}
      <button type="button" class="quiet" title="Compare no longer" aria-label="Compare no longer" onClick={() => keepReference(controller, null)}>×</button>
    </span>
  );
}

function named({ name, source }: Selected, controller: TimelineController): string {
  const label = controller.isJoint ? (controller.sources.find(({ at }) => at === source)?.label ?? "") : "";
  return [plain(shortName(name.slice(0, 400)).slice(0, 80)), plain(label)].filter(Boolean).join(" of ");
}

/** Shifts the second trace so that both begin at the same instant. */
function Align({ own, reference, controller }: { own: Selected; reference: Selected; controller: TimelineController }) {
  const pair = [own, reference];
  const second = pair.find(({ source }) => source === BESIDE);
  const first = pair.find(({ source }) => source !== BESIDE && source !== null);
  if (second === undefined || first === undefined) return null;
  if (first.from === second.from) return null;
  const shift = (controller.sources.find(({ at }) => at === BESIDE)?.shift ?? 0) + first.from - second.from;
  return (
    <button type="button" title="Shift the second trace so that both begin at the same instant" onClick={() => change({ align: alignmentText({ by: "offset", ns: shift }) }, { replace: false })}>
      Align
    </button>
  );
}
