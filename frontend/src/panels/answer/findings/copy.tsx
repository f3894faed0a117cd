// A button that copies a text to the clipboard.

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { download } from "../../../parts/controls/download.ts";

const TOLD_MS = 2_000;

export function CopyButton(props: { text: string; children: ComponentChildren }) {
  const [told, tell] = useState<"" | "copied" | "saved as a file">("");
  useEffect(() => {
    const timer = setTimeout(() => tell(""), TOLD_MS);
    return () => clearTimeout(timer);
  }, [told]);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(props.text);
      tell("copied");
    } catch {
      // without a secure address, or in a frame without the right, there is no clipboard
      download("selftime-answer.md", "text/markdown", props.text);
      tell("saved as a file");
    }
  };
  return (
    <button type="button" class="quiet copy" onClick={() => void copy()}>
      {props.children}
      <span role="status" class="copy-told">{told && ` · ${told}`}</span>
    </button>
  );
}
