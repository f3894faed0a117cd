// Drags the name of a track or a group to another place.

import { useState } from "preact/hooks";
import type { TimelineController } from "../input/controller.ts";
import { movedTo } from "../tracks/arrangement.ts";

/** What is dragged, and over what it could be let go. */
export interface Dragged {
  key: string;
  target: string | null;
}

/** Pixels that the pointer may move during a click. */
const CLICK = 4;

export interface TrackDrag {
  dragged: Dragged | null;
  begin: (event: PointerEvent, key: string) => void;
}

export function useTrackDrag(controller: TimelineController): TrackDrag {
  const [dragged, set] = useState<Dragged | null>(null);
  const begin = (event: PointerEvent, key: string) => {
    const held = event.currentTarget as HTMLElement;
    const names = held.closest(".timeline-gutter");
    if (event.button !== 0 || event.pointerType === "touch" || names === null) return;
    const stop = new AbortController();
    const on = { signal: stop.signal };
    let found: Dragged | null = null;
    const end = () => {
      stop.abort();
      set(null);
    };
    addEventListener("pointermove", (moved) => {
      if (found === null && Math.abs(moved.clientY - event.clientY) <= CLICK) return;
      const over = controller.picture.viewport.lineAt(moved.clientY - names.getBoundingClientRect().top)?.key;
      found = { key, target: targetOf(controller, key, over) };
      set(found);
    }, on);
    addEventListener("pointerup", () => {
      end();
      if (found === null) return;
      const click = new AbortController(); // which follows at once, and is none on the name
      addEventListener("click", (clicked) => clicked.stopPropagation(), { capture: true, signal: click.signal });
      setTimeout(() => click.abort());
      const { groups, arrangement } = controller.picture;
      if (found.target !== null) controller.arrange(movedTo(groups, arrangement, key, found.target));
    }, on);
    addEventListener("pointercancel", end, on);
  };
  return { dragged, begin };
}

function targetOf(controller: TimelineController, key: string, over: string | undefined): string | null {
  const { groups, arrangement } = controller.picture;
  if (over === undefined || movedTo(groups, arrangement, key, over) === arrangement) return null;
  return over;
}
