// A sentence about a trace: names between backticks as code, and nothing in it that acts.

import { pieces } from "./plain.ts";

export function Said(props: { text: string }) {
  return <>{pieces(props.text).map((piece, at) => (piece.isName ? <code key={at}>{piece.text}</code> : piece.text))}</>;
}
