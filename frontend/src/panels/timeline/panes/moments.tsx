// The way from gap to gap, wait to wait, slow step to slow step; and why the shown one is.

import { plain } from "../../../parts/text/plain.ts";
import { link } from "../../../route.ts";
import { countText } from "../../../units.ts";
import type { TimelineController } from "../input/controller.ts";
import { closeMoment, goToMoment } from "../input/jumps.ts";
import { MOMENT_KINDS, MOST, SOURCES } from "../input/moments.ts";
import type { Moment, MomentKind } from "../input/moments.ts";
import { placeText } from "../../../parts/text/place.ts";

export function MomentTools(props: { controller: TimelineController | null }) {
  const { controller } = props;
  const kind = controller?.moments.kind ?? "gap";
  const { key, title } = SOURCES[kind];
  const go = (by: 1 | -1) => controller && void goToMoment(controller, kind, by);
  const choose = (chosen: MomentKind) => {
    if (controller === null) return;
    controller.moments.kind = chosen;
    controller.changed();
  };
  return (
    <span class="timeline-steps" role="group" aria-label="Jump">
      <button type="button" title={`Previous ${title} (${key.toUpperCase()})`} aria-label={`Previous ${title}`} onClick={() => go(-1)}>‹</button>
      <select aria-label="Jump to" value={kind} onChange={(event) => choose(event.currentTarget.value as MomentKind)}>
        {MOMENT_KINDS.map((one) => <option key={one} value={one}>{SOURCES[one].title}</option>)}
      </select>
      <button type="button" title={`Next ${title} (${key})`} aria-label={`Next ${title}`} onClick={() => go(1)}>›</button>
    </span>
  );
}

/** Why the shown moment is, or that there is none. */
export function MomentNote(props: { controller: TimelineController; isListed: (view: string) => boolean }) {
  const { controller, isListed } = props;
  const { shown, lacks, place, kind } = controller.moments;
  if (shown === null && lacks === null) return null;
  const [at, all] = place;
  const longest = all >= MOST ? " longest" : "";
  return (
    <div class="timeline-moment">
      {lacks !== null ? <span>{plain(lacks)}</span> : shown !== null && (
        <>
          <b>{capital(SOURCES[shown.kind].title)} {countText(at)} of {longest && "the "}{countText(all)}{longest}</b>
          <span>{plain(shown.reason)}<Where moment={shown} />.{shown.doc && <span class="muted"> {shown.doc}</span>}</span>
        </>
      )}
      {isListed(SOURCES[kind].view) && <a href={link(SOURCES[kind].view)}>all</a>}
      <button type="button" class="quiet" aria-label="Close" title="Close" onClick={() => closeMoment(controller)}>×</button>
    </div>
  );
}

function Where({ moment }: { moment: Moment }) {
  const { file, line } = moment;
  if (file === null) return null;
  const short = plain(file.split(/[/\\]/).at(-1) ?? file);
  return line === null ? <>, {short}</> : <>, <a href={link("lines", { file, line: String(line) })}>{placeText(short, line)}</a></>;
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
