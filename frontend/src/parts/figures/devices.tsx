// The devices and their utilization.

import "./figures.css";
import { plain } from "../text/plain.ts";
import { UNKNOWN } from "../../units.ts";
import { byDevice, inSection } from "./figures.ts";
import type { Figure } from "./figures.ts";
import { Metric } from "./metric.tsx";

/** Metrics about the certainty of others; shown last. */
const QUIET: ReadonlySet<string> = new Set(["occupancy known", "tensor cores unknown"]);

export function Devices(props: { figures: readonly Figure[] }) {
  const { devices, rows } = byDevice(props.figures);
  if (devices.length === 0) return null;
  const isMany = devices.length > 1;
  return (
    <div class="wide">
      <table class="figures">
        {isMany && (
          <thead>
            <tr>
              <th scope="col">Device</th>
              {devices.map((device) => <th key={device} scope="col" class="number">{device ?? UNKNOWN}</th>)}
            </tr>
          </thead>
        )}
        <tbody>{rows.map((row, at) => <Row key={at} row={row} />)}</tbody>
      </table>
    </div>
  );
}

function Row(props: { row: readonly (Figure | null)[] }) {
  const { row } = props;
  const first = row.find((figure) => figure !== null);
  if (first === undefined || first === null) return null;
  return (
    <tr data-quiet={QUIET.has(first.metric)}>
      <th scope="row"><Metric figure={first} /></th>
      {row.map((figure, at) => (
        <td key={at} class="number" title={figure === null ? undefined : plain(figure.definition)}>
          {isShare(figure) && <Meter share={figure?.value ?? 0} />}
          <span class="metered">{plain(figure?.text ?? UNKNOWN)}</span>
        </td>
      ))}
    </tr>
  );
}

function isShare(figure: Figure | null): boolean {
  return figure !== null && figure.value !== null && (figure.text ?? "").endsWith("%");
}

export function Meter(props: { share: number }) {
  const width = `${100 * Math.min(1, Math.max(0, props.share))}%`;
  return <span class="meter" aria-hidden="true"><i style={{ width }} /></span>;
}

/** How busy the host's threads are. */
export function Host(props: { figures: readonly Figure[] }) {
  const found = inSection(props.figures, "host");
  if (found.length === 0) return null;
  return <table class="figures"><tbody>{found.map((figure) => <Row key={figure.metric} row={[figure]} />)}</tbody></table>;
}
