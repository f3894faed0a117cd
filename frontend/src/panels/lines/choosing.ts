// Which line is shown, in the address.

import { change } from "../../route.ts";

export function choose(place: { file: string; line: number | null }): void {
  change({ file: place.file, line: place.line === null ? undefined : String(place.line) });
}
