// A table cell; values are written as in the terminal.

import type { Cell, Column } from "../../data/api.ts";
import { sentLabel } from "../../parts/data/labels.ts";
import { plain } from "../../parts/text/plain.ts";
import { link } from "../../route.ts";
import { isText } from "../../data/table.ts";
import { exactText, text, UNKNOWN } from "../../units.ts";
import { TAIL } from "./layout/columns.ts";

/** Characters of a name in a cell or tooltip; the row's details have all. */
const SHOWN = 400;
const TIP = 1500;

export function wordsOf(column: Pick<Column, "unit">, value: Cell): string {
  if (value === null) return UNKNOWN;
  if (isText(column.unit) || typeof value === "string") return plain(String(value));
  return text(value, column.unit);
}

interface ValueProps {
  column: Pick<Column, "unit" | "name" | "labels">;
  value: Cell;
  /** The end to show of a long name, if not its own. */
  ending?: string | undefined;
}

export function Value(props: ValueProps) {
  const { column, value, ending } = props;
  if (value === null) return <span class="grid-unknown" aria-label="unknown">–</span>;
  const words = wordsOf(column, typeof value === "string" ? value.slice(0, TIP) : value);
  if (!isText(column.unit)) return <Amount words={words} unit={column.unit} exact={exactText(value, column.unit)} />;
  if (words === "") return <span class="grid-unknown" aria-label="empty">""</span>;
  const label = sentLabel(column.labels, String(value));
  if (label !== undefined) {
    return <span class="grid-text" title={[words, label.doc].filter((part) => part !== "").join(": ")}><span class="grid-start">{label.text}</span></span>;
  }
  const isCut = column.unit !== "sentence" && words.length > 2 * TAIL;
  const tail = isCut ? tailOf(column.name, words) : 0;
  const head = words.slice(0, Math.min(words.length - tail, SHOWN));
  return (
    <span class="grid-text" title={words.length > TAIL ? words : undefined}>
      <span class="grid-start">{head}</span>
      {tail > 0 && <span class="grid-end">{ending === undefined ? words.slice(-tail) : plain(ending)}</span>}
    </span>
  );
}

/** A number whose unit is as wide as those above and below it, so that the digits stand in line. */
function Amount(props: { words: string; unit: Column["unit"]; exact: string | undefined }) {
  const { words, unit, exact } = props;
  const at = words.indexOf(" ");
  const isAligned = at > 0 && (unit === "ns" || unit === "instant" || unit === "bytes");
  if (!isAligned) return <span class="grid-text" title={exact}>{words}</span>;
  return (
    <span class="grid-amount" title={exact}>
      {words.slice(0, at)} <span class={`grid-unit ${unit === "bytes" ? "grid-bytes" : ""}`}>{words.slice(at + 1)}</span>
    </span>
  );
}

/** Shortens a path so that its file name stays visible. */
function tailOf(column: string, words: string): number {
  if (column !== "file") return TAIL;
  const name = words.length - words.search(/[^/\\]*$/);
  return Math.min(name + 1, 2 * TAIL, words.length - 1);
}

/** The link of a cell: a file leads to its line, a time to the timeline. */
export function leadOf(name: string, unit: string, valueOf: (column: string) => Cell): string | null {
  const value = valueOf(name);
  if (value === null) return null;
  if (name === "file" || name === "line") {
    const [file, line] = [valueOf("file"), valueOf("line")];
    if (typeof file !== "string" || line === null) return null;
    return link("lines", { file, line: String(line) });
  }
  if (unit !== "instant" || typeof value !== "number") return null;
  const lasting = ["duration", "time", "longest"].map(valueOf).find((one) => typeof one === "number");
  return timelineLink(value, typeof lasting === "number" ? lasting : 0, null);
}

/** The least that is shown of the timeline around an instant, in ns. */
const AROUND = 20_000;

/** A stretch of the timeline with room on both sides. */
export function timelineLink(start: number, lasting: number, slice: Cell): string {
  const margin = Math.max(lasting, AROUND);
  return link("timeline", {
    from: String(Math.round(start - margin)),
    to: String(Math.round(start + lasting + margin)),
    ...(slice === null ? {} : { slice: String(slice) }),
  });
}
