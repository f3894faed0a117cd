// Slices that the chosen one leads to: related ones, and the device work that it launched.

import { shortName } from "../../../draw/names.ts";
import { plain } from "../../../parts/text/plain.ts";
import { countText, timeText } from "../../../units.ts";
import type { Slice } from "../drawing/viewport.ts";
import type { TimelineController } from "../input/controller.ts";
import type { LaunchedWork, Link } from "../input/relations.ts";

const MOST_LINKS = 40;

interface Props {
  slice: Slice;
  controller: TimelineController;
}

export function Links(props: Props & { links: readonly Link[] }) {
  const { links, ...known } = props;
  if (links.length === 0) return null;
  return (
    <div class="timeline-table timeline-links">
      <h3>Related slices</h3>
      <dl>
        {links.slice(0, MOST_LINKS).map((one, at) => (
          <div key={at}>
            <dt>{one.key}</dt>
            <dd><Way link={one} {...known} /></dd>
          </div>
        ))}
      </dl>
      {links.length > MOST_LINKS && <p class="muted">and {links.length - MOST_LINKS} more</p>}
    </div>
  );
}

/** The kernels and copies of an operator, in order of time. */
export function DeviceWork(props: Props & { work: LaunchedWork }) {
  const { work, ...known } = props;
  const { links, count, busy } = work;
  return (
    <div class="timeline-table timeline-work">
      <h3>
        Device work <span class="number">{countText(count)}, {timeText(busy)} busy</span>
        <button type="button" title="Fit the slice with its device work (K)" onClick={() => known.controller.fitWork()}>Fit</button>
      </h3>
      <ol>
        {links.map((one) => (
          <li key={one.slice}><Way link={one} {...known} /></li>
        ))}
      </ol>
      {count > links.length && <p class="muted">These are the {countText(links.length)} longest of {countText(count)}.</p>}
    </div>
  );
}

function Way(props: Props & { link: Link }) {
  const { link, slice, controller } = props;
  const when = `${timeText(link.duration)}, ${offset(link.start - slice.start)}`;
  return (
    <>
      <button type="button" class="timeline-link" title={plain(link.name.slice(0, 2000))} onClick={() => void controller.open(link.slice)}>
        {plain(shortName(link.name.slice(0, 400)).slice(0, 200))}
      </button>
      <span class="muted" title={when}>{when}</span>
    </>
  );
}

function offset(by: number): string {
  return by < 0 ? `${timeText(-by)} earlier` : `${timeText(by)} later`;
}
