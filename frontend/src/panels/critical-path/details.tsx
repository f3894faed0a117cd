// The chosen segment of the critical path in sentences, with its place in the timeline.

import { labelOfValue } from "../../parts/data/labels.ts";
import type { Labels } from "../../parts/data/labels.ts";
import { plain } from "../../parts/text/plain.ts";
import { link } from "../../route.ts";
import { timeText, countedText, shareText } from "../../units.ts";
import type { PanelProps } from "../panel.ts";
import { timelineLink } from "../grid/cell.tsx";
import type { Band, Segment } from "./band.ts";
import { KIND_COLOURS } from "./band.ts";

interface DetailsProps {
  band: Band;
  at: number;
  whole: number;
  labels: { kinds: Labels; links: Labels };
  views: PanelProps["views"];
}

/** What runs in a segment, for a tooltip and for screen readers. */
export function segmentWords(band: Band, at: number, kinds: Labels): string {
  const segment = band.segments[at];
  if (segment === undefined) return "";
  const what = labelOfValue(kinds, segment.kind).text;
  const name = segment.name === null ? "" : `, ${segment.name.slice(0, 200)}`;
  const many = segment.count > 1 ? `, ${countedText(segment.count, "segment")}` : "";
  return `${what}${name}: ${timeText(segment.time)} on ${band.lanes[segment.lane] ?? ""}${many}`;
}

export function Details(props: DetailsProps) {
  const { band, at, whole, labels } = props;
  const segment = band.segments[at];
  if (segment === undefined) {
    return <p class="path-details muted">Click a segment for what it is and why it began; drag to look closer, double-click to see all.</p>;
  }
  const kind = labelOfValue(labels.kinds, segment.kind);
  const why = segment.link === null ? null : labelOfValue(labels.links, segment.link).text;
  return (
    <div class="path-details" role="status">
      <p>
        <i style={{ background: `var(--${KIND_COLOURS[segment.kind] ?? "other"})` }} aria-hidden="true" />
        <b>{kind.text}</b>
        {segment.name !== null && <span class="mono path-name" title={plain(segment.name.slice(0, 1500))}>{plain(segment.name.slice(0, 300))}</span>}
      </p>
      <p>
        <b>{timeText(segment.time)}</b> on {plain(band.lanes[segment.lane] ?? "")}, {shareText(whole > 0 ? segment.time / whole : 0)} of the path
        {segment.count > 1 && <span class="muted"> in {countedText(segment.count, "segment")} too narrow to draw apart; the name is that of the longest</span>}.{" "}
        {why !== null && <>It began because {plain(why)}.</>}{" "}
        <Links segment={segment} views={props.views} />
      </p>
    </div>
  );
}

/** Names of kernels and operators have their own tables. */
function Links({ segment, views }: { segment: Segment; views: PanelProps["views"] }) {
  const { start, end, slice, kind, name } = segment;
  const table = kind === "compute" || kind === "communication" ? "kernels" : kind === "host" ? "operators" : null;
  const where = JSON.stringify([{ column: "name", op: "is", value: name }]);
  return (
    <>
      <a href={timelineLink(start, end - start, slice)}>in the timeline</a>
      {table !== null && name !== null && views.has(table) && <>{" "}<a href={link(table, { where })}>its row among {table}</a></>}
    </>
  );
}
