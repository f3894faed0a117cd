// Keys of the whole page: `?` for the list of shortcuts, `g` and a letter for a panel.

import { useEffect, useRef, useState } from "preact/hooks";
import { isTyping } from "../parts/controls/keys.tsx";
import { go } from "../route.ts";

/** How long `g` waits for its letter. */
const PATIENCE_MS = 3_000;

/** Follows the keys; true while `g` waits for a letter. */
export function usePanelKeys(letters: ReadonlyMap<string, string>, onSheet: () => void): boolean {
  const [isGoing, set] = useState(false);
  const going = useRef(false); // the letter may come before anything is drawn anew
  useEffect(() => {
    const turn = (on: boolean) => {
      going.current = on;
      set(on);
    };
    const pressed = (event: KeyboardEvent) => {
      if (isNotOurs(event)) return;
      const wasGoing = going.current;
      turn(event.key === "g" && !wasGoing);
      if (event.key === "?") onSheet();
      else if (wasGoing) {
        const [panel] = [...letters].find(([, letter]) => letter === event.key) ?? [];
        if (panel === undefined) return;
        event.stopImmediatePropagation(); // the letter means the panel, not what the panel does by it
        event.preventDefault();
        go(panel);
      }
    };
    addEventListener("keydown", pressed, { capture: true });
    return () => removeEventListener("keydown", pressed, { capture: true });
  }, [letters, onSheet]);
  useEffect(() => {
    if (!isGoing) return undefined;
    const timer = setTimeout(() => {
      going.current = false;
      set(false);
    }, PATIENCE_MS);
    return () => clearTimeout(timer);
  }, [isGoing]);
  return isGoing;
}

function isNotOurs(event: KeyboardEvent): boolean {
  const isChord = event.ctrlKey || event.altKey || event.metaKey;
  const isModifier = event.key === "Shift";
  return isChord || isModifier || isTyping(event) || document.querySelector("dialog[open]") !== null;
}
