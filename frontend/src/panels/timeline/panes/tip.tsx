// The tooltip of the timeline.

import { plain } from "../../../parts/text/plain.ts";
import { countText, instantText, timeText } from "../../../units.ts";
import type { TimelineController } from "../input/controller.ts";
import type { Slice } from "../drawing/viewport.ts";
import { BESIDE, ownTime, placeOfTrack } from "../tracks/sources.ts";
import { counterText } from "../tracks/tracks.ts";
import type { Track } from "../tracks/tracks.ts";

export interface Pointed {
  at: { x: number; y: number };
  slice: Slice | null;
  counter: { track: Track; time: number; value: number; low: number; high: number } | null;
  width: number;
  height: number;
}

const LONGEST = 240;

export function Tip(props: { pointed: Pointed; controller: TimelineController | null }) {
  const { at, slice, counter, width, height } = props.pointed;
  const onLeft = at.x > width * 0.6;
  const place = onLeft
    ? { right: `calc(100% - var(--gutter) - ${at.x - 12}px)` }
    : { left: `calc(var(--gutter) + ${at.x + 14}px)` };
  const level = at.y > height * 0.6 ? { bottom: `${height - at.y + 12}px` } : { top: `${at.y + 16}px` };
  return (
    <div class="timeline-tip" style={{ ...place, ...level }} role="presentation">
      {slice && <SliceTip slice={slice} start={ownStart(slice, props.controller)} />}
      {slice && props.controller && <Rank slice={slice} controller={props.controller} />}
      {!slice && counter && <CounterTip {...counter} />}
    </div>
  );
}

/** When it began by the clock of its trace; ranks have a common one. */
function ownStart({ id, track, start }: Slice, controller: TimelineController | null): number {
  const second = placeOfTrack(track) === BESIDE ? controller?.sources.find(({ at }) => at === BESIDE) : undefined;
  return id < 0 || second === undefined ? start : ownTime(second, start);
}

function SliceTip({ slice, start }: { slice: Slice; start: number }) {
  const name = plain(slice.name.slice(0, LONGEST)) + (slice.name.length > LONGEST ? "…" : "");
  return (
    <>
      <p class="timeline-tip-name">{name}</p>
      {slice.count > 1 ? (
        <p>{countText(slice.count)} slices within {timeText(slice.end - slice.start)}, this the longest; click to come closer</p>
      ) : (
        <dl>
          <dt>duration</dt><dd>{timeText(slice.end - slice.start)}</dd>
          {!Number.isNaN(slice.self) && <><dt>self</dt><dd>{timeText(slice.self)}</dd></>}
          <dt>start</dt><dd>{instantText(start)}</dd>
          <dt>category</dt><dd>{plain(slice.category)}</dd>
        </dl>
      )}
    </>
  );
}

/** Of several ranks that are shown: which one it is of, and the same collective on the others. */
function Rank(props: { slice: Slice; controller: TimelineController }) {
  const { slice, controller } = props;
  if (!controller.isJoint || slice.id < 0) return null;
  const others = controller.twins.of(slice.id).map((id) => plain(controller.of(id).label));
  return (
    <p class="timeline-tip-rank">
      {plain(controller.of(slice.id).label)}{others.length > 0 && `; the same one on ${others.join(", ")}`}
    </p>
  );
}

function CounterTip(props: NonNullable<Pointed["counter"]>) {
  const { track, time, value, low, high } = props;
  const written = (amount: number) => counterText(track.kind, amount);
  return (
    <>
      <p class="timeline-tip-name">{plain(track.title)}</p>
      <dl>
        <dt>value</dt><dd>{Number.isNaN(value) ? "unknown" : written(value)}</dd>
        {low < high && <><dt>from, to</dt><dd>{written(low)}, {written(high)}</dd></>}
        <dt>at</dt><dd>{instantText(time)}</dd>
      </dl>
      {track.note !== "" && <p class="timeline-tip-note">{plain(track.note)}</p>}
    </>
  );
}
