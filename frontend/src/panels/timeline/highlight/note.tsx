// What is highlighted: how many slices of which finding or row, and the way from one to the next.

import "./note.css";
import { TraceText } from "../../../parts/text/trace-text.tsx";
import { plain } from "../../../parts/text/plain.ts";
import { link } from "../../../route.ts";
import { countText } from "../../../units.ts";
import type { TimelineController } from "../input/controller.ts";
import { closeHighlighted, fitHighlighted, goToHighlighted } from "./controller.ts";
import type { Highlighted } from "./places.ts";
import { partText } from "./texts.ts";

export function HighlightNote(props: { controller: TimelineController; isReport: boolean }) {
  const { controller, isReport } = props;
  const { highlighted } = controller.picture.chosen;
  const { of, error } = controller.highlights;
  if (of === null) return null;
  return (
    <div class="timeline-moment timeline-highlight" role="group" aria-label="Highlighted slices">
      {highlighted === null
        ? <span>{error === null ? "Reading the trace for every rule …" : plain(error)}</span>
        : <Told controller={controller} highlighted={highlighted} isReport={isReport} />}
      <button
        type="button" class="quiet" data-highlight="Highlight no slices any more" aria-label="Clear" title="Clear (Esc)"
        onClick={() => closeHighlighted(controller)}
      >
        Clear
      </button>
    </div>
  );
}

function Told(props: { controller: TimelineController; highlighted: Highlighted; isReport: boolean }) {
  const { controller, highlighted, isReport } = props;
  const { number, places } = highlighted;
  const at = controller.highlights.at;
  const part = partText(highlighted, isReport);
  return (
    <>
      <span>
        <b>{number.text}</b> of the {number.kind === "row" ? "account's row" : "finding"}{" "}
        <a href={link("answer", number.answer)}><TraceText text={number.title} /></a>{" "}
        <span class="muted">
          ({number.detail}){number.what !== "" && <>: <TraceText text={number.what} /></>}{part !== null && <>. <TraceText text={part} /></>}
        </span>
      </span>
      <span class="timeline-steps">
        <button type="button" data-highlight="Previous slice of the finding" title="Previous (,)" aria-label="Previous highlighted slice" onClick={() => goToHighlighted(controller, -1)}>‹</button>
        <span class="number">{at < 0 ? "" : `${countText(at + 1)} of `}{countText(places.length)}</span>
        <button type="button" data-highlight="Next slice of the finding" title="Next (.)" aria-label="Next highlighted slice" onClick={() => goToHighlighted(controller, 1)}>›</button>
      </span>
      <button type="button" class="quiet" title="Fit all of them" onClick={() => fitHighlighted(controller)}>Fit</button>
    </>
  );
}
