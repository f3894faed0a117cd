// Pages in Markdown, such as those of the rules. Links stay within the page; others are only text.

import "./markdown.css";
import { useMemo } from "preact/hooks";
import { blocks } from "./markdown.ts";
import type { Block, Inline } from "./markdown.ts";
import { Code } from "../code/source.tsx";

export function Markdown(props: { text: string }) {
  const found = useMemo(() => blocks(props.text), [props.text]);
  return <div class="markdown">{found.map((block, at) => <One key={at} block={block} />)}</div>;
}

function One(props: { block: Block }) {
  const { block } = props;
  switch (block.kind) {
    case "heading": {
      const Heading = (["h2", "h3", "h4"] as const)[Math.min(block.level, 3) - 1] ?? "h4";
      return <Heading><Words text={block.text} /></Heading>;
    }
    case "paragraph":
      return <p><Words text={block.text} /></p>;
    case "code":
      return block.language === "python"
        ? <Code lines={block.text.split("\n")} label="code" />
        : <pre class="drawing" tabIndex={0}>{block.text}</pre>;
    case "list": {
      const items = block.items.map((item, at) => <li key={at}><Words text={item} /></li>);
      return block.ordered ? <ol>{items}</ol> : <ul>{items}</ul>;
    }
    case "table":
      return (
        <table>
          <thead><tr>{block.head.map((cell, at) => <th key={at} scope="col"><Words text={cell} /></th>)}</tr></thead>
          <tbody>
            {block.rows.map((row, at) => (
              <tr key={at}>{row.map((cell, column) => <td key={column}><Words text={cell} /></td>)}</tr>
            ))}
          </tbody>
        </table>
      );
  }
}

function Words(props: { text: readonly Inline[] }) {
  return <>{props.text.map((piece, at) => <Piece key={at} piece={piece} />)}</>;
}

function Piece(props: { piece: Inline }) {
  const { piece } = props;
  if (piece.kind === "code") return <code>{piece.text}</code>;
  if (piece.kind === "strong") return <strong>{piece.text}</strong>;
  if (piece.kind === "emphasis") return <em>{piece.text}</em>;
  if (piece.kind === "link" && piece.to.startsWith("#/")) return <a href={piece.to}>{piece.text}</a>;
  return <>{piece.text}</>;
}
