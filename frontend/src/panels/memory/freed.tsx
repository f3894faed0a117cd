// Where the memory of a row was released, and how long it lived.

import { QueryResult, useQuery } from "../../parts/data/asking.tsx";
import { loadTable } from "../../parts/data/full-table.ts";
import { plain } from "../../parts/text/plain.ts";
import { link } from "../../route.ts";
import { bytesText, countText, timeText } from "../../units.ts";
import type { PanelProps } from "../panel.ts";
import type { Curve } from "./curves.ts";
import { ofDevice } from "./curves.ts";
import type { Place } from "./freed.ts";
import { placesOf } from "./freed.ts";
import { placeText } from "../../parts/text/place.ts";

const MOST = 12;

export function Freed(props: PanelProps & { curve: Curve; by: string; group: string }) {
  const { data, trace, curve, by, group } = props;
  const where = ofDevice(curve);
  const asked = useQuery(() => loadTable(data, trace.id, "memory_lifetimes", { by }, { where }), JSON.stringify([trace.id, by, where]));
  return (
    <QueryResult asked={asked} what="where it was released">
      {(table) => <Places places={placesOf(table, group)} />}
    </QueryResult>
  );
}

function Places(props: { places: readonly Place[] }) {
  const { places } = props;
  if (places.length === 0) return <p class="muted">The recording has no allocation of it.</p>;
  return (
    <>
      <p class="muted">All that was allocated there in the recording, by where it was released:</p>
      <ul class="memory-freed">
        {places.slice(0, MOST).map((place, at) => (
          <li key={at}>
            <span class="number">{bytesText(place.bytes)}</span>
            <span>in {countText(place.blocks)} {place.blocks === 1 ? "block" : "blocks"}</span>
            <Where place={place} />
            {place.median !== null && (
              <span class="muted">
                after {timeText(place.median)}
                {place.longest !== null && place.longest > place.median && `, at most ${timeText(place.longest)}`}
              </span>
            )}
          </li>
        ))}
        {places.length > MOST && <li class="muted">{countText(places.length - MOST)} places more</li>}
      </ul>
    </>
  );
}

function Where(props: { place: Place }) {
  const { operator, file, line, lives } = props.place;
  if (lives) return <strong>not released when the recording ends</strong>;
  return (
    <span>
      released{file === null && operator === null && " outside of operators and known lines"}
      {operator !== null && <> by <span class="mono">{plain(operator)}</span></>}
      {file !== null && (
        <> at <a class="mono" href={link("lines", line === null ? { file } : { file, line: String(line) })}>{plain(placeText(file.slice(file.lastIndexOf("/") + 1), line))}</a></>
      )}
    </span>
  );
}
