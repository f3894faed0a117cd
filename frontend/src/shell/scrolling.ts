// Restores scroll positions when going back; scrolling elements have a name in `data-scroll`.

import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { entry } from "../route.ts";

type Place = { left: number; top: number };
type Shown = { readonly current: HTMLElement | null };

/** Scroll positions by history entry and element name. */
const LEFT_AT = new Map<number, Map<string, Place>>();

/** Longest time to wait for a panel's content, in ms. */
const PATIENCE_MS = 5_000;

function nameOf(element: Element, main: Element): string | undefined {
  return element === main ? "" : (element as HTMLElement).dataset["scroll"];
}

function elementOf(name: string, main: HTMLElement): Element | null {
  return name === "" ? main : main.querySelector(`[data-scroll="${CSS.escape(name)}"]`);
}

/** Restores scroll positions; returns whether all elements could be scrolled. */
function restored(main: HTMLElement, places: Map<string, Place>): boolean {
  return [...places].every(([name, { left, top }]) => {
    const element = elementOf(name, main);
    if (element === null) return false;
    element.scrollTo({ left, top, behavior: "instant" });
    return Math.abs(element.scrollTop - top) <= 1 && Math.abs(element.scrollLeft - left) <= 1;
  });
}

export function useScrolling(main: Shown, panel: string): void {
  const isRestoring = useRef(false);
  const shown = useRef(panel);
  const at = entry();

  useEffect(() => {
    const scrolled = (event: Event) => {
      const element = event.target;
      if (isRestoring.current || main.current === null || !(element instanceof Element)) return;
      const name = nameOf(element, main.current);
      if (name === undefined || !main.current.contains(element)) return;
      const places = LEFT_AT.get(entry()) ?? new Map<string, Place>();
      LEFT_AT.set(entry(), places.set(name, { left: element.scrollLeft, top: element.scrollTop }));
    };
    document.addEventListener("scroll", scrolled, { capture: true, passive: true });
    return () => document.removeEventListener("scroll", scrolled, { capture: true });
  }, [main]);

  useLayoutEffect(() => {
    const places = LEFT_AT.get(at);
    const isOther = shown.current !== panel;
    shown.current = panel;
    if (main.current !== null && isOther && places === undefined) main.current.scrollTo(0, 0);
    if (places === undefined) return undefined;
    return restoring(main, new Map(places), isRestoring);
  }, [at, panel]);
}

/** Tries until the content is there, or the user scrolls, or it takes too long. */
function restoring(
  main: Shown,
  places: Map<string, Place>,
  isRestoring: { current: boolean },
): () => void {
  const until = performance.now() + PATIENCE_MS;
  let frame = 0;
  const stop = () => {
    cancelAnimationFrame(frame);
    isRestoring.current = false;
    removeEventListener("wheel", stop);
    removeEventListener("pointerdown", stop);
    removeEventListener("keydown", stop);
  };
  const attempt = () => {
    if (main.current === null || restored(main.current, places) || performance.now() > until) {
      frame = requestAnimationFrame(stop); // after the event of the last scroll
    } else {
      frame = requestAnimationFrame(attempt);
    }
  };
  isRestoring.current = true;
  addEventListener("wheel", stop, { passive: true });
  addEventListener("pointerdown", stop);
  addEventListener("keydown", stop);
  attempt();
  return stop;
}
