// Notes on what a recording lacks, with the flag that records it.

import "./missing-data.css";
import type { ComponentChildren } from "preact";
import { Empty } from "../data/asking.tsx";
import { TraceText } from "./trace-text.tsx";

/** In place of a picture that the recording cannot give. */
export function MissingData(props: { title: string; lacks: readonly string[]; children?: ComponentChildren }) {
  return (
    <Empty title={props.title}>
      {props.lacks.map((lack) => <p key={lack}>Not in this recording: <TraceText text={lack} />.</p>)}
      {props.children}
    </Empty>
  );
}

/** Beside a picture that would show more. */
export function MissingDataNote(props: { lacks: readonly string[] }) {
  if (props.lacks.length === 0) return null;
  return (
    <p class="missing-data" role="note">
      Not in this recording: {props.lacks.map((lack, at) => (
        <span key={lack}>{at > 0 && "; "}<TraceText text={lack} /></span>
      ))}.
    </p>
  );
}
