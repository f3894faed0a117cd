// A tree as an icicle: the root on top, or upward as a flame; width by weight. Flame, Modules and
// Compare share it.

import "./icicle.css";
import type { ComponentChildren, RefObject } from "preact";
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { paint, ROW } from "../../draw/icicle.ts";
import type { Box, Linked, Tree, Direction } from "../../draw/tree.ts";
import { boxAt, boxOf, layout, neighbourNode, nodesOfBox, upsideDown } from "../../draw/tree.ts";
import { usePalette } from "../charts/theme.ts";
import { prepareCanvas } from "../../draw/canvas.ts";
import { useSize } from "../charts/sized.ts";

export interface IcicleProps {
  tree: Tree;
  /** Name of a node's colour. */
  colour: (node: number) => string;
  /** The strength of a node's colour; 1 by default. */
  strength?: (node: number) => number;
  hatched?: (node: number) => boolean;
  label: (box: Box) => string;
  /** The tooltip of a node. */
  tip?: (box: Box) => ComponentChildren;
  /** A node's role in chains; no chains by default. */
  linked?: Linked;
  /** The text of a node for screen readers. */
  describe: (node: number) => string;
  /** The node over the full width; -1 for all. */
  focus: number;
  /** The chosen node; -1 for none. */
  cursor: number;
  hits: ReadonlySet<number> | null;
  title: string;
  /** Whether the roots are at the bottom. */
  upward?: boolean;
  /** The height in pixels; by default from the style sheet. */
  height?: number;
  /** Its share of the height that is there, where it is one of several. */
  grow?: number;
  onHover: (box: Box | null) => void;
  onChoose: (node: number) => void;
  /** What a click does; a double click and Enter focus. */
  onPress: (node: number) => void;
  onFocus: (node: number) => void;
}

const WAYS: Readonly<Record<string, Direction>> = {
  ArrowUp: "up",
  ArrowDown: "down",
  ArrowLeft: "left",
  ArrowRight: "right",
};

const UPSIDE_DOWN: Readonly<Record<string, string>> = { ArrowUp: "ArrowDown", ArrowDown: "ArrowUp" };

export function Icicle(props: IcicleProps) {
  const { cursor } = props;
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const [top, setTop] = useState(0);
  const [hovered, setHovered] = useState<Box | null>(null);
  const [pointer, setPointer] = useState({ x: 0, y: 0 });
  const { boxes, height, room, lift } = usePicture(props, box, canvas, top, hovered);
  const under = (event: MouseEvent) => {
    const area = canvas.current?.getBoundingClientRect();
    if (area === undefined) return null;
    const row = Math.floor((event.clientY - area.top + top - lift) / ROW);
    return boxAt(boxes, event.clientX - area.left, row);
  };
  const hover = (over: Box | null) => {
    if (over !== hovered) props.onHover(over);
    setHovered(over);
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
      style={{ ...(props.height !== undefined && { height: `${props.height + 2}px` }), ...(props.grow !== undefined && { flexGrow: props.grow }) }}
      aria-roledescription="icicle chart"
      aria-label={`${props.title}. ${cursor >= 0 ? props.describe(cursor) : "Arrows walk it."}`}
      onScroll={(event) => setTop(event.currentTarget.scrollTop)}
      onMouseMove={(event) => {
        hover(under(event));
        if (props.tip) setPointer({ x: event.clientX, y: event.clientY });
      }}
      onMouseLeave={() => hover(null)}
      onClick={(event) => at(event, props.onPress)}
      onDblClick={(event) => at(event, props.onFocus)}
      onKeyDown={(event) => pressed(event, props, boxes)}
    >
      <canvas ref={canvas} aria-hidden="true" />
      <div aria-hidden="true" style={{ height: `${Math.max(height - room, 0)}px` }} />
      {props.tip && hovered && <Tip at={pointer}>{props.tip(hovered)}</Tip>}
    </div>
  );
}

/** Beside the pointer, on the side that has room. */
function Tip(props: { at: { x: number; y: number }; children: ComponentChildren }) {
  const { x, y } = props.at;
  const across = x > innerWidth / 2 ? { right: `${innerWidth - x + 12}px` } : { left: `${x + 14}px` };
  const along = y > innerHeight / 2 ? { bottom: `${innerHeight - y + 12}px` } : { top: `${y + 16}px` };
  return <div class="icicle-tip" role="presentation" style={{ ...across, ...along }}>{props.children}</div>;
}

type Place<T> = RefObject<T | null>;

/** Lays the tree out, paints what is in sight, and keeps the chosen box there. */
function usePicture(
  props: IcicleProps,
  place: Place<HTMLDivElement>,
  canvas: Place<HTMLCanvasElement>,
  top: number,
  hovered: Box | null,
): { boxes: readonly Box[]; height: number; room: number; lift: number } {
  const { tree, focus, cursor, hits, colour, strength, hatched, label, linked, upward = false } = props;
  const size = useSize(place);
  const palette = usePalette();
  const laid = useMemo(() => {
    const down = layout(tree, focus, size.width, 1, linked);
    return upward ? upsideDown(down) : down;
  }, [tree, focus, size.width, linked, upward]);
  const height = laid.rows * ROW;
  // what is less high than its place stands on its ground
  const lift = upward ? Math.max(size.height - height, 0) : 0;
  const chosen = useMemo(() => boxOf(tree, laid.boxes, cursor), [tree, laid, cursor]);
  const found = useMemo(() => hits && boxesWith(tree, laid.boxes, hits), [tree, laid, hits]);
  useLayoutEffect(() => {
    const ctx = canvas.current && prepareCanvas(canvas.current, size);
    const isAround = (row: number) => (upward ? laid.rows - 1 - row : row) < laid.above;
    if (ctx) paint({ ctx, palette, ...size, top: top - lift }, { boxes: laid.boxes, isAround, colour, strength, hatched, label, found, chosen, hovered });
  }, [laid, palette, size, top, lift, found, chosen, hovered, colour, strength, hatched, label]);
  useLayoutEffect(() => {
    if (upward && place.current !== null) place.current.scrollTop = height;
  }, [upward, height, size]);
  useLayoutEffect(() => {
    const shown = place.current;
    if (shown !== null && chosen !== null) reveal(shown, chosen.row * ROW);
  }, [chosen]);
  return { boxes: laid.boxes, height, room: size.height, lift };
}

/** Scrolls so that a row stands within the window, with a row to spare. */
function reveal(shown: HTMLElement, y: number): void {
  if (y < shown.scrollTop + ROW) shown.scrollTop = Math.max(y - ROW, 0);
  else if (y + 2 * ROW > shown.scrollTop + shown.clientHeight) {
    shown.scrollTop = y + 2 * ROW - shown.clientHeight;
  }
}

/** The boxes that a search found something in. */
function boxesWith(tree: Tree, boxes: readonly Box[], hits: ReadonlySet<number>): Set<Box> {
  const isHit = (box: Box) => (box.top === box.last ? hits.has(box.node) : nodesOfBox(tree, box).some((node) => hits.has(node)));
  return new Set(boxes.filter((box) => box.joined === 1 && isHit(box)));
}

/** Where an arrow leads from a node, chains taken in one step. */
function steppedIn(tree: Tree, boxes: readonly Box[], node: number, way: Direction): number {
  const box = boxOf(tree, boxes, node);
  const from = box === null ? node : way === "down" ? box.last : box.top;
  const next = neighbourNode(tree, from, way);
  if (next === from) return node;
  return boxOf(tree, boxes, next)?.node ?? next;
}

/** What is around the focused node, or the chain that it is of. */
function around(tree: Tree, boxes: readonly Box[], focus: number): number {
  const above = tree.parent[boxOf(tree, boxes, focus)?.top ?? focus] ?? -1;
  return boxOf(tree, boxes, above)?.node ?? above;
}

function pressed(event: KeyboardEvent, props: IcicleProps, boxes: readonly Box[]): void {
  const { tree, focus, cursor } = props;
  const way = WAYS[props.upward ? (UPSIDE_DOWN[event.key] ?? event.key) : event.key];
  if (event.altKey || event.ctrlKey || event.metaKey) return;
  if (way !== undefined) props.onChoose(steppedIn(tree, boxes, cursor >= 0 ? cursor : focus, way));
  else if (event.key === "Enter" && cursor >= 0) props.onFocus(cursor);
  else if (event.key === "Backspace") props.onFocus(around(tree, boxes, focus));
  else if (event.key === "Home") props.onFocus(-1);
  else return;
  event.preventDefault();
}
