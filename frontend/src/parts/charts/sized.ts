// Observes the size of an element.

import type { RefObject } from "preact";
import { useLayoutEffect, useState } from "preact/hooks";

export interface Size {
  width: number;
  height: number;
}

export function useSize(element: RefObject<HTMLElement | null>): Size {
  const [size, set] = useState<Size>({ width: 0, height: 0 });
  useLayoutEffect(() => {
    const shown = element.current;
    if (shown === null) return undefined;
    const measure = () => {
      const { clientWidth: width, clientHeight: height } = shown;
      set((known) => (known.width === width && known.height === height ? known : { width, height }));
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(shown);
    return () => observer.disconnect();
  }, [element]);
  return size;
}

/** Resizes a canvas to its size on the screen, and returns its context. */
export function prepareCanvas(canvas: HTMLCanvasElement, size: Size): CanvasRenderingContext2D | null {
  const ratio = devicePixelRatio || 1;
  const [width, height] = [Math.round(size.width * ratio), Math.round(size.height * ratio)];
  if (canvas.width !== width) canvas.width = width;
  if (canvas.height !== height) canvas.height = height;
  const ctx = canvas.getContext("2d");
  ctx?.setTransform(ratio, 0, 0, ratio, 0, 0);
  return ctx;
}
