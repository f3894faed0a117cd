// The search and buttons above the canvas, and notes on missing data.

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Page } from "../../../data/api.ts";
import { Find } from "../../../parts/controls/find.tsx";
import { countText, timeText } from "../../../units.ts";
import type { TimelineController } from "../input/controller.ts";
import { goToMatch } from "../input/search.ts";
import { MomentTools } from "./moments.tsx";
import { cellReader } from "../tiles/cell-reader.ts";

interface ToolsProps {
  controller: TimelineController | null;
  listed: boolean;
  onList: () => void;
  /** More buttons, before the others. */
  children?: ComponentChildren;
}

export function Tools(props: ToolsProps) {
  const { controller } = props;
  const find = controller?.picture.chosen.find ?? "";
  const told = useMatches(controller, find.trim());
  const [marking, setMarking] = useState(false);
  const match = (by: 1 | -1) => controller && goToMatch(controller, by);
  useEffect(() => {
    if (controller) controller.marking = marking;
  }, [controller, marking]);
  return (
    <div class="timeline-tools">
      <Find
        label="Search slices"
        value={find}
        told={told}
        onChange={(text) => controller?.find(text)}
        onEnter={() => void match(1)}
      />
      {find !== "" && (
        <span class="timeline-steps">
          <button type="button" title="Previous (N)" aria-label="Previous match" onClick={() => void match(-1)}>↑</button>
          <button type="button" title="Next (n)" aria-label="Next match" onClick={() => void match(1)}>↓</button>
        </span>
      )}
      <MomentTools controller={controller} />
      <Status controller={controller} />
      {props.children}
      <button type="button" title="Fit the slice, the area, or all (F)" onClick={() => controller?.fit()}>Fit</button>
      <button type="button" title="The whole trace (0)" onClick={() => controller?.whole()}>Whole</button>
      <button type="button" aria-pressed={marking} title="Drag marks an area (or shift and drag)" onClick={() => setMarking(!marking)}>Mark</button>
      <button type="button" aria-pressed={props.listed} title="Visible slices as a table (t)" onClick={props.onList}>As a table</button>
    </div>
  );
}

/** How many slices the search finds, in words. */
function useMatches(controller: TimelineController | null, find: string): string | undefined {
  const [told, tell] = useState<string | undefined>();
  useEffect(() => {
    tell(undefined);
    if (controller === null || find === "") return undefined;
    let wanted = true;
    controller.data.page(controller.trace, "matches", { text: find }, { columns: ["count"] }).then(
      (page) => wanted && tell(foundText(page)),
      () => wanted && tell("of what is shown"), // a report does not hold the names of all slices
    );
    return () => {
      wanted = false;
    };
  }, [controller, find]);
  return told;
}

function foundText(page: Page): string {
  const read = cellReader(page);
  let count = 0;
  for (let row = 0; row < page.rows; row++) count += read.number("count", row);
  return count === 0 ? "none" : countText(count);
}

/** A note on data that is missing from the canvas. */
function Status(props: { controller: TimelineController | null }) {
  const [text, set] = useState("");
  const { controller } = props;
  useEffect(() => controller?.picture.follow(() => set(statusOf(controller))), [controller]);
  return <span class="timeline-status" role="status" title={text}>{text}</span>;
}

function statusOf(controller: TimelineController): string {
  const { store, viewport } = controller.picture;
  if (store.error !== null) return `not all could be read: ${store.error}`;
  if (store.downsampled !== null) {
    const pixels = Math.round((viewport.limits.to - viewport.limits.from) / store.downsampled);
    return `downsampled to ${countText(pixels)} pixels: open the trace with \`selftime serve\` for all`;
  }
  return `${timeText(viewport.span.to - viewport.span.from)} shown`;
}
