// What a row of the view `memory_peak` is of, by the chosen grouping.

import type { FullTable } from "../../parts/data/full-table.ts";
import { textAt } from "../../parts/data/full-table.ts";
import { plain } from "../../parts/text/plain.ts";
import { link } from "../../route.ts";
import { placeText } from "../../parts/text/place.ts";

export const BY = [
  ["category", "category", "what it is for"],
  ["module", "module", "the nn.Module that allocated it"],
  ["operator", "operator", "the operator that allocated it"],
  ["line", "line", "the source line that allocated it"],
  ["category+operator+line", "all of these", "each combination"],
] as const;
export type HolderGrouping = (typeof BY)[number][0];

const NOWHERE: Readonly<Record<HolderGrouping, string>> = {
  "category": "unknown",
  "module": "outside modules",
  "operator": "outside operators",
  "line": "unknown line",
  "category+operator+line": "unknown",
};

/** The description of a row by the chosen grouping. */
export function Holder(props: { table: FullTable; row: number; by: HolderGrouping }) {
  const { table, row } = props;
  const of = (name: string) => textAt(table, name, row);
  const [category, operator, module, file, line] = ["category", "operator", "module", "file", "line"].map(of);
  const said = [category, operator, module?.replace(/^nn\.Module: /, "")].filter((word): word is string => Boolean(word));
  const title = [...said, file && placeText(file, line ?? "?")].filter(Boolean).join(", ");
  return (
    <span class="holder-text" title={plain(title)}>
      {said.map((word, at) => <span key={at} class={at === 0 && category ? "holder-category" : "mono"}>{plain(word)}</span>)}
      {file && (
        <a class="mono" href={link("lines", line ? { file, line } : { file })}>{plain(placeText(file.slice(file.lastIndexOf("/") + 1), line))}</a>
      )}
      {said.length === 0 && !file && <span class="muted">{NOWHERE[props.by]}</span>}
    </span>
  );
}
