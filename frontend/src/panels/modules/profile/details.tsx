// Details of the chosen row of the profile, in sentences, with links to other panels.

import { path } from "../../../draw/tree.ts";
import { number, textAt } from "../../../parts/data/full-table.ts";
import { plain } from "../../../parts/text/plain.ts";
import { link } from "../../../route.ts";
import { timeText, countedText, shareText, text } from "../../../units.ts";
import type { PanelProps } from "../../panel.ts";
import { NodeFooter } from "../node-footer.tsx";
import { PassLegend } from "../passes.tsx";
import type { Profile } from "./profile.ts";
import { ACHIEVED, tableOf, UNKNOWN_COLOUR } from "./profile.ts";

interface DetailsProps {
  views: PanelProps["views"];
  profile: Profile;
  hasPasses: boolean;
  node: number;
  root: number;
  onFocus: (node: number) => void;
}

export function Details(props: DetailsProps) {
  const { profile, node, root, hasPasses, onFocus } = props;
  return (
    <NodeFooter tree={profile.tree} root={root} onFocus={onFocus}>
      {node < 0 ? <Legend profile={profile} hasPasses={hasPasses} /> : <Chosen {...props} />}
    </NodeFooter>
  );
}

function Legend({ profile, hasPasses }: { profile: Profile; hasPasses: boolean }) {
  const isKnown = (profile.table.columns["achieved_share"] ?? []).some((share) => share !== null);
  return (
    <p class="profile-legend">
      {isKnown && <span class="muted">Achieved share of the peak:</span>}
      {isKnown && ACHIEVED.map(({ colour, words }) => <Key key={colour} colour={colour} words={words} />)}
      {isKnown && <Key colour={UNKNOWN_COLOUR} words="unknown, hatched" />}
      {!isKnown && (
        <span class="muted">
          {profile.onDevice
            ? "The achieved share of the peak is unknown for all of it: the peak of the device is unknown, or input shapes were not recorded."
            : "The achieved share of host time is known where `selftime run` measured the CPU's peak, and no device works."}
        </span>
      )}
      {hasPasses && <span class="muted">Bars by pass:</span>}
      {hasPasses && <PassLegend />}
    </p>
  );
}

function Key({ colour, words }: { colour: string; words: string }) {
  return <span class="modules-pass"><i style={{ background: `var(--${colour})` }} />{words}</span>;
}

function Chosen({ views, profile, node }: DetailsProps) {
  const { tree, table } = profile;
  const names = path(tree, node).map((at) => plain(tree.name[at] ?? ""));
  const of = (column: string) => number(table, column, node);
  const count = of("count") ?? 0;
  const [flops, bytes] = [of("flops_rate"), of("bytes_rate")];
  const lead = tableOf(profile, node);
  const full = textAt(table, "name", node) ?? "";
  return (
    <>
      <p class="modules-path mono" title={plain(full.slice(0, 1500))}>{names.join(" › ")}</p>
      <p class="modules-figures">
        <span>{timeText(of("total_time") ?? 0)} <span class="muted">of {profile.onDevice ? "device" : "host"} time, {shareText(of("share") ?? 0)} of all</span></span>
        <span class="muted">{countedText(count, profile.onDevice ? "piece of device work" : "slice").replace("piece of device works", "pieces of device work")}</span>
        <span>{achievedWords(profile, node)}</span>
        {flops !== null && <span>{text(flops, "flops/s")} <span class="muted">{ofPeak(of("flops_share"))}</span></span>}
        {bytes !== null && <span>{text(bytes, "bytes/s")} <span class="muted">{ofPeak(of("bytes_share"))}</span></span>}
        {lead !== null && views.has(lead.panel) && <a href={link(lead.panel, lead.params)}>{lead.words}</a>}
      </p>
    </>
  );
}

function ofPeak(share: number | null): string {
  return share === null ? "(peak unknown)" : `(${shareText(share)} of the peak)`;
}

/** What is known of how near the row comes to the peak, as a sentence. */
function achievedWords({ table }: Profile, node: number): string {
  const of = (column: string) => number(table, column, node) ?? 0;
  const known = of("known_time");
  const share = number(table, "achieved_share", node);
  if (share === null) return "How near it comes to the peak is unknown.";
  const rest = of("total_time") - known;
  const told = `At the peak ${timeText(known)} of it would take ${timeText(known - of("wasted_time"))} (${shareText(share)})`;
  return rest > 0 ? `${told}; of ${timeText(rest)} that is unknown.` : `${told}.`;
}
