// The files by cost.

import { plain } from "../../parts/text/plain.ts";
import { change } from "../../route.ts";
import { shareText, timeText } from "../../units.ts";
import type { Costs } from "./costs.ts";
import { heat, splitPath } from "./costs.ts";

export function Files(props: { costs: Costs; shown: string | null }) {
  const { costs, shown } = props;
  const { metric, elsewhere } = costs;
  const all = costs.all[metric];
  return (
    <nav class="lines-files" aria-label="Files by cost">
      {costs.files.map((file) => {
        const { name, folder } = splitPath(plain(file.file));
        const share = all > 0 ? heat(file, metric) / all : 0;
        return (
          <button
            key={file.file}
            type="button"
            class="quiet"
            title={plain(file.file)}
            aria-current={file.file === shown ? "true" : undefined}
            onClick={() => change({ file: file.file, line: undefined })}
          >
            <span class="lines-name">{name}</span>
            <span class="number">{timeText(heat(file, metric))}</span>
            <span class="lines-folder muted">{folder}</span>
            <span class="number muted">{shareText(share)}</span>
            <span class="lines-share" aria-hidden="true"><i style={{ width: `${Math.min(share, 1) * 100}%` }} /></span>
          </button>
        );
      })}
      {elsewhere !== null && elsewhere[metric] > 0 && (
        <p class="muted" title="Time without a known source line">
          <span>unknown source line</span>
          <span class="number">{timeText(elsewhere[metric])}</span>
        </p>
      )}
    </nav>
  );
}
