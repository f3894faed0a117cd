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
