// The chosen line in the URL.

import { change } from "../../route.ts";

export function chooseLine(place: { file: string; line: number | null }): void {
  change({ file: place.file, line: place.line === null ? undefined : String(place.line) });
}
