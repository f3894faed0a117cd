// Leads to the longest occurrence of something in the timeline. It is asked for when it is wanted.

import { useState } from "preact/hooks";
import type { Data, Options } from "../api.ts";
import { go } from "../route.ts";
import { moment } from "./moment.ts";
import { cell, whole } from "./whole.ts";

export function Longest(props: {
  data: Data;
  trace: string;
  /** Options of the view `occurrences`. */
  of: Options;
  text?: string;
}) {
  const { data, trace, of, text = "longest in the timeline" } = props;
  const [state, set] = useState<"ready" | "asking" | "none">("ready");
  const show = async () => {
    set("asking");
    try {
      const table = await whole(data, trace, "occurrences", { ...of, top: 1 }, { columns: ["id", "start", "duration"] }, 1);
      const [id, start] = [cell(table, "id", 0), cell(table, "start", 0)];
      if (typeof id !== "number" || typeof start !== "number") return set("none");
      set("ready");
      go("timeline", moment(start, Number(cell(table, "duration", 0) ?? 0), id));
    } catch {
      set("none"); // an inlined report does not hold every slice
    }
  };
  if (state === "none") return <span class="muted">not in the timeline</span>;
  return (
    <button type="button" class="as-link" disabled={state === "asking"} onClick={show}>{text}</button>
  );
}
