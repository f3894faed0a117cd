// Lines of source as an editor shows them: numbered, coloured, the line in question marked.

import "./source.css";
import type { Data, Source } from "../../data/api.ts";
import { useQuery } from "../data/asking.tsx";
import { EditorLink } from "./editor-link.tsx";
import { tokens } from "./python.ts";
import type { Token } from "./python.ts";
import { isCell } from "../text/place.ts";

/** One line's text in colours; for panels that lay out the lines themselves. */
export function Coloured(props: { tokens: readonly Token[] }) {
  return <>{props.tokens.map((token, at) => <span key={at} class={`py-${token.kind}`}>{token.text}</span>)}</>;
}

/** Lines of code; numbers stand in the gutter, which is not copied with them. */
export function Code(props: {
  lines: readonly string[];
  /** Number of the first line; without it none are shown. */
  from?: number | undefined;
  /** Number of the line to mark. */
  mark?: number | undefined;
  label: string;
}) {
  const { lines, from, mark } = props;
  const digits = from === undefined ? 0 : String(from + lines.length - 1).length;
  return (
    <pre class="source" tabIndex={0} aria-label={props.label} style={{ "--digits": digits }}>
      {tokens(lines).map((cut, at) => {
        const number = from === undefined ? undefined : from + at;
        const isMarked = number !== undefined && number === mark;
        return (
          <code
            key={at}
            data-line={number}
            class={isMarked ? "marked" : undefined}
            aria-current={isMarked ? "true" : undefined}
          >
            <Coloured tokens={cut} />
            {"\n"}
          </code>
        );
      })}
    </pre>
  );
}

/** The lines around one of a file, or a word on why they cannot be shown. */
export function SourceAt(props: {
  data: Data;
  trace: string;
  file: string;
  line: number;
  /** So many lines are shown before and after it. */
  around?: number;
  onLoad?: (source: Source | null) => void;
}) {
  const { data, trace, file, line, around = 5, onLoad } = props;
  const ask = async () => {
    const from = Math.max(1, line - around);
    const source = await data.source(trace, file, from, line + around + 1 - from);
    onLoad?.(source);
    return source;
  };
  const asked = useQuery(ask, `${trace} ${file} ${line} ${around}`);
  if (asked.state === "waiting") return <p class="muted" role="status">reading the file …</p>;
  if (asked.state === "failed") return <p class="muted">{asked.error}</p>;
  const source = asked.value;
  if (source === null || line >= source.from + source.lines.length) {
    const words = isCell(file)
      ? "The text of the cell was not recorded, so its lines cannot be shown."
      : "The source file is not available here, so its lines cannot be shown.";
    return <p class="muted">{words} <EditorLink file={file} line={line} /></p>;
  }
  const last = source.from + source.lines.length - 1;
  return (
    <>
      <Code
        lines={source.lines}
        from={source.from}
        mark={line}
        label={`${file}, lines ${source.from} to ${last}; line ${line} is marked`}
      />
      <EditorLink file={file} line={line} />
    </>
  );
}
