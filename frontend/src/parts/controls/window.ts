// The visible rows of a scrolling list with rows of equal height.

import type { RefObject } from "preact";
import { useEffect, useState } from "preact/hooks";

export interface VisibleRange {
  from: number;
  to: number;
}

/** Rows to draw: those in sight, and a few more, so that a small scroll shows no hole. */
export function visibleRange(count: number, height: number, top: number, room: number, spare = 8): VisibleRange {
  const from = Math.max(Math.floor(top / height) - spare, 0);
  const to = Math.min(Math.ceil((top + room) / height) + spare, count);
  return { from: Math.min(from, count), to };
}

/** The rows in sight of an element that scrolls. */
export function useVisibleRange(element: RefObject<HTMLElement | null>, count: number, height: number): VisibleRange {
  const [view, set] = useState({ top: 0, room: 800 });
  useEffect(() => {
    const shown = element.current;
    if (shown === null) return undefined;
    const look = () => set({ top: shown.scrollTop, room: shown.clientHeight });
    look();
    shown.addEventListener("scroll", look, { passive: true });
    const observer = new ResizeObserver(look);
    observer.observe(shown);
    return () => {
      shown.removeEventListener("scroll", look);
      observer.disconnect();
    };
  }, [element]);
  return visibleRange(count, height, view.top, view.room);
}

/** Scrolls as little as shows a row whole, below a head of so many pixels. */
export function scrollRowIntoView(shown: HTMLElement, row: number, height: number, head = 0): void {
  const y = row * height;
  if (y < shown.scrollTop) shown.scrollTop = y;
  else if (y + height > shown.scrollTop + shown.clientHeight - head) {
    shown.scrollTop = y + height - shown.clientHeight + head;
  }
}
