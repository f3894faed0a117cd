// A box that opens below a button, and closes by Escape or a press elsewhere.

import { useEffect, useRef, useState } from "preact/hooks";

export interface Popover<T extends HTMLElement> {
  open: boolean;
  show: (open: boolean) => void;
  /** What holds both the button and the box. */
  holder: { current: T | null };
}

export function usePopover<T extends HTMLElement>(): Popover<T> {
  const [open, show] = useState(false);
  const holder = useRef<T>(null);
  useEffect(() => {
    if (!open) return undefined;
    const stop = new AbortController();
    const pressed = (event: KeyboardEvent) => {
      if (event.key !== "Escape") return;
      event.stopPropagation(); // it closes this box, and nothing else
      show(false);
      holder.current?.querySelector("button")?.focus();
    };
    const away = (event: Event) => {
      if (!holder.current?.contains(event.target as Node)) show(false);
    };
    addEventListener("keydown", pressed, { signal: stop.signal, capture: true });
    addEventListener("pointerdown", away, { signal: stop.signal });
    return () => stop.abort();
  }, [open]);
  return { open, show, holder };
}
