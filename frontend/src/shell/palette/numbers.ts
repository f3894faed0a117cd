// The findings and rows of the account of a trace, and ways to their slices; the advice is not computed.

import type { Data } from "../../data/api.ts";
import type { AdviceNumber } from "../../data/numbers.ts";
import { go } from "../../route.ts";
import type { Entry } from "./entries.ts";

/** What is known of the advice; none if it is not known. */
export async function numberEntries(data: Data, trace: string): Promise<Entry[]> {
  const { numbers } = await data.numbers(trace);
  return entriesOf(numbers);
}

/** Each finding once, and the slices of what its fix changes; of each row the slices. */
export function entriesOf(numbers: readonly AdviceNumber[]): Entry[] {
  return numbers.flatMap((number): Entry[] => {
    const slices: Entry = {
      id: `slices ${number.of}`, kind: "finding", title: `Slices of: ${number.title}`, detail: number.text,
      run: () => go("timeline", { of: number.of }),
    };
    if (number.kind === "row") return [slices];
    if (number.kind !== "changed") return [];
    const run = () => go("answer", number.answer);
    return [{ id: `finding ${number.of}`, kind: "finding", title: number.title, detail: number.detail, run }, slices];
  });
}

/** What can be done with the slices that the timeline highlights. */
export function highlightEntries(): Entry[] {
  const buttons = [...document.querySelectorAll<HTMLElement>("main [data-highlight]")];
  return buttons.map((button) => {
    const title = button.dataset["highlight"] ?? "";
    return { id: `highlight ${title}`, kind: "action", title, run: () => button.click() };
  });
}
