// A sentence with names in backticks shown as code.

import { pieces } from "./plain.ts";

export function TraceText(props: { text: string }) {
  return <>{pieces(props.text).map((piece, at) => (piece.isName ? <code key={at}>{piece.text}</code> : piece.text))}</>;
}
