// What the bands of the stack are, with their bytes at an instant.

import { Swatch } from "../../parts/charts/stack.tsx";
import { plain } from "../../parts/text/plain.ts";
import { link } from "../../route.ts";
import { bytesText, instantText } from "../../units.ts";
import type { Band } from "./bands.ts";
import { bytesAt, isEarlier } from "./bands.ts";

interface LegendProps {
  bands: readonly Band[];
  time: number;
  /** The words for the instant. */
  when: string;
  lit: Band | null;
  onLight: (band: Band | null) => void;
}

export function Legend(props: LegendProps) {
  const { bands, time, when, lit, onLight } = props;
  const listed = [...bands.filter((band) => !isEarlier(band)), ...bands.filter(isEarlier)];
  return (
    <ul class="memory-bands" aria-label="What the bands are" onMouseLeave={() => onLight(null)}>
      <li class="muted">{when}, {instantText(time)}:</li>
      {listed.map((band) => {
        const bytes = bytesAt(band, time);
        return (
          <li key={band.label} class={lit === null || lit.label === band.label ? "" : "dim"} onMouseEnter={() => onLight(band)}>
            <Swatch colour={band.colour} />
            <Name band={band} />
            <span class="muted number">{bytes === 0 ? "-" : bytesText(bytes)}</span>
          </li>
        );
      })}
    </ul>
  );
}

function Name(props: { band: Band }) {
  const { file, line, label } = props.band;
  if (file === null) return <span class="memory-band" title={plain(label)}>{plain(label)}</span>;
  const params = line === null ? { file } : { file, line: String(line) };
  return <a class="memory-band mono" title={plain(file)} href={link("lines", params)}>{plain(label)}</a>;
}
