// Notes on what a recording lacks, with the flag that records it.

import "./lacking.css";
import type { ComponentChildren } from "preact";
import { Empty } from "../data/asking.tsx";
import { pieces } from "./plain.ts";

/** A sentence whose parts between backticks are code. */
export function Sentence(props: { text: string }) {
  const said = pieces(props.text);
  return <>{said.map((piece, at) => (piece.isName ? <code key={at}>{piece.text}</code> : piece.text))}</>;
}

/** In place of a picture that the recording cannot give. */
export function Lacking(props: { title: string; lacks: readonly string[]; children?: ComponentChildren }) {
  return (
    <Empty title={props.title}>
      {props.lacks.map((lack) => <p key={lack}>Not in this recording: <Sentence text={lack} />.</p>)}
      {props.children}
    </Empty>
  );
}

/** Beside a picture that would show more. */
export function Lacks(props: { lacks: readonly string[] }) {
  if (props.lacks.length === 0) return null;
  return (
    <p class="lacks" role="note">
      Not in this recording: {props.lacks.map((lack, at) => (
        <span key={lack}>{at > 0 && "; "}<Sentence text={lack} /></span>
      ))}.
    </p>
  );
}
