// What the bands of the stack are, with their bytes at an instant; it hides bands and shows them.

import { Swatch } from "../../parts/charts/stack.tsx";
import { plain } from "../../parts/text/plain.ts";
import { link } from "../../route.ts";
import { bytesText, instantText } from "../../units.ts";
import type { Band } from "./bands.ts";
import { bytesAt, isEarlier } from "./bands.ts";
import type { Hidden } from "./hiding.ts";
import { alone, toggled } from "./hiding.ts";

interface LegendProps {
  bands: readonly Band[];
  time: number;
  /** The words for the instant. */
  when: string;
  lit: Band | null;
  hidden: Hidden;
  onLight: (band: Band | null) => void;
  onHide: (hidden: Hidden) => void;
}

export function Legend(props: LegendProps) {
  const { bands, time, when, hidden, onLight, onHide } = props;
  const listed = [...bands.filter((band) => !isEarlier(band)), ...bands.filter(isEarlier)];
  return (
    <ul class="memory-bands" aria-label="What the bands are" onMouseLeave={() => onLight(null)}>
      <li class="muted">{when}, {instantText(time)}:</li>
      {listed.map((band) => <Entry key={band.label} {...props} band={band} />)}
      {bands.some((band) => hidden.has(band.label)) && (
        <li><button type="button" class="quiet" onClick={() => onHide(new Set())}>show all</button></li>
      )}
    </ul>
  );
}

function Entry(props: LegendProps & { band: Band }) {
  const { bands, band, time, lit, hidden, onLight, onHide } = props;
  const { label } = band;
  const bytes = bytesAt(band, time);
  const isHidden = hidden.has(label);
  const isDim = isHidden || (lit !== null && lit.label !== label);
  return (
    <li class={isDim ? "dim" : ""} onMouseEnter={() => onLight(isHidden ? null : band)}>
      <button
        type="button"
        class="quiet memory-hide"
        aria-pressed={!isHidden}
        aria-label={plain(label)}
        title={isHidden ? "Show it" : "Hide it"}
        onClick={() => onHide(toggled(hidden, label))}
      >
        <Swatch colour={isHidden ? "sunken" : band.colour} />
      </button>
      <Name band={band} />
      <span class="muted number">{bytes === 0 ? "-" : bytesText(bytes)}</span>
      {bands.length > 1 && (
        <button type="button" class="quiet memory-only" aria-label={`only ${plain(label)}`} title="Show this alone; once more shows all" onClick={() => onHide(alone(hidden, label, bands))}>
          only
        </button>
      )}
    </li>
  );
}

function Name(props: { band: Band }) {
  const { file, line, label } = props.band;
  if (file === null) return <span class="memory-band" title={plain(label)}>{plain(label)}</span>;
  const params = line === null ? { file } : { file, line: String(line) };
  return <a class="memory-band mono" title={plain(file)} href={link("lines", params)}>{plain(label)}</a>;
}
