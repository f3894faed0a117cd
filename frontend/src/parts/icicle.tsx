// A tree as an icicle: the root on top, width by weight. Flame and Modules share it.

import "./icicle.css";
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { paint, ROW } from "../draw/icicle.ts";
import type { Tree, Way } from "../draw/tree.ts";
import { boxAt, layout, stepped } from "../draw/tree.ts";
import { usePalette } from "./palette.ts";
import { prepared, useSize } from "./sized.ts";

export interface IcicleProps {
  tree: Tree;
  /** Name of a node's colour. */
  colour: (node: number) => string;
  label: (node: number) => string;
  /** What a screen reader says of a node. */
  describe: (node: number) => string;
  /** The node over the full width; -1 for all. */
  focus: number;
  /** The chosen node; -1 for none. */
  cursor: number;
  hits: ReadonlySet<number> | null;
  title: string;
  /** In pixels; without it the style sheet decides. */
  height?: number;
  onHover: (node: number, joined: number) => void;
  onChoose: (node: number) => void;
  /** What a click does; a double click and Enter focus. */
  onPress: (node: number) => void;
  onFocus: (node: number) => void;
}

const WAYS: Readonly<Record<string, Way>> = {
  ArrowUp: "up",
  ArrowDown: "down",
  ArrowLeft: "left",
  ArrowRight: "right",
};

export function Icicle(props: IcicleProps) {
  const { tree, focus, cursor, hits } = props;
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const size = useSize(box);
  const palette = usePalette();
  const [top, setTop] = useState(0);
  const [hovered, setHovered] = useState(-1);
  const laid = useMemo(() => layout(tree, focus, size.width), [tree, focus, size.width]);
  useLayoutEffect(() => {
    const ctx = canvas.current && prepared(canvas.current, size);
    if (!ctx) return;
    const { colour, label } = props;
    paint({ ctx, palette, ...size, top }, { ...laid, tree, colour, label, hits, cursor, hovered });
  }, [laid, palette, size, top, hits, cursor, hovered, props.colour, props.label]);
  useLayoutEffect(() => {
    const shown = box.current;
    const row = laid.boxes.find((one) => one.node === cursor && one.joined === 1)?.row;
    if (shown !== null && row !== undefined) reveal(shown, row * ROW);
  }, [cursor, laid]);
  const under = (event: MouseEvent) => {
    const area = canvas.current?.getBoundingClientRect();
    if (area === undefined) return null;
    const row = Math.floor((event.clientY - area.top + top) / ROW);
    return boxAt(laid.boxes, event.clientX - area.left, row);
  };
  const hover = (event: MouseEvent) => {
    const over = under(event);
    const node = over?.node ?? -1;
    if (node !== hovered) props.onHover(node, over?.joined ?? 0);
    setHovered(node);
  };
  const leave = () => {
    setHovered(-1);
    props.onHover(-1, 0);
  };
  const at = (event: MouseEvent, act: (node: number) => void) => {
    const over = under(event);
    if (over !== null) act(over.node);
  };
  return (
    <div
      ref={box}
      class="icicle"
      tabIndex={0}
      role="application"
      style={props.height === undefined ? undefined : { height: `${props.height + 2}px` }}
      aria-roledescription="icicle chart"
      aria-label={`${props.title}. ${cursor >= 0 ? props.describe(cursor) : "Arrows walk it."}`}
      onScroll={(event) => setTop(event.currentTarget.scrollTop)}
      onMouseMove={hover}
      onMouseLeave={leave}
      onClick={(event) => at(event, props.onPress)}
      onDblClick={(event) => at(event, props.onFocus)}
      onKeyDown={(event) => pressed(event, props)}
    >
      <canvas ref={canvas} aria-hidden="true" />
      <div aria-hidden="true" style={{ height: `${Math.max(laid.rows * ROW - size.height, 0)}px` }} />
    </div>
  );
}

/** Scrolls so that a row stands within the window, with a row to spare. */
function reveal(shown: HTMLElement, y: number): void {
  if (y < shown.scrollTop + ROW) shown.scrollTop = Math.max(y - ROW, 0);
  else if (y + 2 * ROW > shown.scrollTop + shown.clientHeight) {
    shown.scrollTop = y + 2 * ROW - shown.clientHeight;
  }
}

function pressed(event: KeyboardEvent, props: IcicleProps): void {
  const { tree, focus, cursor } = props;
  const way = WAYS[event.key];
  if (event.altKey || event.ctrlKey || event.metaKey) return;
  if (way !== undefined) props.onChoose(stepped(tree, cursor >= 0 ? cursor : focus, way));
  else if (event.key === "Enter" && cursor >= 0) props.onFocus(cursor);
  else if (event.key === "Backspace") props.onFocus(focus < 0 ? -1 : (tree.parent[focus] ?? -1));
  else if (event.key === "Home") props.onFocus(-1);
  else return;
  event.preventDefault();
}
