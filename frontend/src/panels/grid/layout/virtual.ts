// The visible rows and columns of a scrolling table.

import {
  elementScroll,
  observeElementOffset,
  observeElementRect,
  Virtualizer,
} from "@tanstack/virtual-core";
import type { RefObject } from "preact";
import { useEffect, useLayoutEffect, useReducer, useState } from "preact/hooks";
import type { PlacedColumn } from "./columns.ts";
import { columnsInView } from "./columns.ts";

export const ROW = 24;
/** Heights of the head and of the sums, which cover rows below them. */
export const HEAD = 42;
const TOTALS = 26;
/** Browsers cannot scroll further than some 16 million pixels: rows beyond are not shown. */
export const MOST_ROWS = 600_000;
const OVERSCAN = 12;

type Scroller = RefObject<HTMLDivElement | null>;

export function useVirtualRows(
  count: number,
  scroller: Scroller,
  hasTotals: boolean,
): Virtualizer<HTMLDivElement, Element> {
  const [, redraw] = useReducer((times: number) => times + 1, 0);
  const options = {
    count,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW,
    overscan: OVERSCAN,
    scrollMargin: HEAD,
    scrollPaddingStart: HEAD,
    scrollPaddingEnd: hasTotals ? TOTALS : 0,
    scrollToFn: elementScroll,
    observeElementRect,
    observeElementOffset,
    onChange: () => redraw(undefined),
  };
  const [virtual] = useState(() => new Virtualizer<HTMLDivElement, Element>(options));
  virtual.setOptions(options);
  useLayoutEffect(() => virtual._didMount(), [virtual]);
  useLayoutEffect(() => virtual._willUpdate());
  return virtual;
}

/** The columns in sight; changes only when others come into sight. */
export function useColumnsInSight(columns: readonly PlacedColumn[], scroller: Scroller): [number, number] {
  const [window, set] = useState({ left: 0, width: 1200 });
  useEffect(() => {
    const shown = scroller.current;
    if (shown === null) return undefined;
    const scrolled = () => {
      const left = Math.round(shown.scrollLeft);
      set((known) => (known.left === left ? known : { ...known, left }));
    };
    const resized = () => {
      const width = shown.clientWidth;
      set((known) => (known.width === width ? known : { ...known, width }));
    };
    scrolled();
    resized();
    const observer = new ResizeObserver(resized);
    observer.observe(shown);
    // before the rows are drawn anew: after that, asking where it stands costs a layout
    shown.addEventListener("scroll", scrolled, { passive: true, capture: true });
    return () => {
      observer.disconnect();
      shown.removeEventListener("scroll", scrolled, { capture: true });
    };
  }, [scroller]);
  return columnsInView(columns, window.left, window.width);
}
