// The search and buttons above the canvas, and notes on missing data.

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Page } from "../../../data/api.ts";
import { Find } from "../../../parts/controls/find.tsx";
import { countText, timeText } from "../../../units.ts";
import type { TimelineController } from "../input/desk.ts";
import { cellReader } from "../tiles/reading.ts";

interface ToolsProps {
  desk: TimelineController | null;
  listed: boolean;
  onList: () => void;
  /** More buttons, before the others. */
  children?: ComponentChildren;
}

export function Tools(props: ToolsProps) {
  const { desk } = props;
  const find = desk?.picture.chosen.find ?? "";
  const told = useMatches(desk, find);
  const [marking, setMarking] = useState(false);
  const mark = () => {
    if (desk) desk.marking = !marking;
    setMarking(!marking);
  };
  return (
    <div class="timeline-tools">
      <Find
        label="Search slices"
        value={find}
        told={told}
        onChange={(text) => desk?.find(text)}
        onEnter={() => void desk?.match(1)}
      />
      {find !== "" && (
        <span class="timeline-steps">
          <button type="button" title="Previous (N)" aria-label="Previous match" onClick={() => void desk?.match(-1)}>↑</button>
          <button type="button" title="Next (n)" aria-label="Next match" onClick={() => void desk?.match(1)}>↓</button>
        </span>
      )}
      <Status desk={desk} />
      {props.children}
      <button type="button" title="Fit the slice, the area, or all (F)" onClick={() => desk?.fit()}>Fit</button>
      <button type="button" title="The whole trace (0)" onClick={() => desk?.whole()}>Whole</button>
      <button type="button" aria-pressed={marking} title="Drag marks an area (or shift and drag)" onClick={mark}>Mark</button>
      <button type="button" aria-pressed={props.listed} title="Visible slices as a table (t)" onClick={props.onList}>As a table</button>
    </div>
  );
}

/** How many slices the search finds, in words. */
function useMatches(desk: TimelineController | null, find: string): string | undefined {
  const [told, tell] = useState<string | undefined>();
  useEffect(() => {
    tell(undefined);
    if (desk === null || find === "") return undefined;
    let wanted = true;
    desk.data.page(desk.trace, "matches", { text: find }, { columns: ["count"] }).then(
      (page) => wanted && tell(foundText(page)),
      () => wanted && tell("of what is shown"), // a report does not hold the names of all slices
    );
    return () => {
      wanted = false;
    };
  }, [desk, find]);
  return told;
}

function foundText(page: Page): string {
  const read = cellReader(page);
  let count = 0;
  for (let row = 0; row < page.rows; row++) count += read.number("count", row);
  return count === 0 ? "none" : countText(count);
}

/** A note on data that is missing from the canvas. */
function Status(props: { desk: TimelineController | null }) {
  const [text, set] = useState("");
  const { desk } = props;
  useEffect(() => desk?.picture.follow(() => set(statusOf(desk))), [desk]);
  return <span class="timeline-status" role="status" title={text}>{text}</span>;
}

function statusOf(desk: TimelineController): string {
  const { store, sight } = desk.picture;
  if (store.error !== null) return `not all could be read: ${store.error}`;
  if (store.thinned !== null) {
    const pixels = Math.round((sight.limits.to - sight.limits.from) / store.thinned);
    return `thinned to ${countText(pixels)} pixels: open the trace with \`selftime serve\` for all`;
  }
  return `${timeText(sight.span.to - sight.span.from)} shown`;
}
