// What can be done with a track or a group: pin, hide, move, show more rows.

import { useLayoutEffect, useRef } from "preact/hooks";
import { plain } from "../../../parts/text/plain.ts";
import { change, current, go } from "../../../route.ts";
import { countText } from "../../../units.ts";
import type { TimelineController } from "../input/controller.ts";
import { PINS, movedTo, neighbour, toggleHidden, togglePin } from "../tracks/arrangement.ts";
import { allKey } from "../tracks/layout.ts";
import type { Line } from "../tracks/layout.ts";
import { withoutQuery } from "../tracks/query-tracks.ts";
import { placeOfTrack } from "../tracks/sources.ts";

interface Item {
  text: string;
  keys?: string;
  does: (() => void) | null;
}

/** Moves a track or a group past its neighbour. */
export function move(controller: TimelineController, key: string, by: 1 | -1): void {
  const { groups, arrangement } = controller.picture;
  const target = neighbour(groups, arrangement, key, by);
  if (target === undefined) return;
  controller.arrange(movedTo(groups, arrangement, key, target));
  controller.say(by < 0 ? "moved up" : "moved down");
}

function itemsOf(controller: TimelineController, { key, track, open, hidden }: Line): Item[] {
  const { picture } = controller;
  const { arrangement, groups } = picture;
  if (key === PINS) return [{ text: "Unpin all", does: () => controller.arrange({ ...arrangement, pins: [] }) }];
  const moves = ([-1, 1] as const).map((by) => ({
    text: by < 0 ? "Move up" : "Move down",
    keys: by < 0 ? "Alt+↑" : "Alt+↓",
    does: neighbour(groups, arrangement, key, by) === undefined ? null : () => move(controller, key, by),
  }));
  const hide = { text: "Hide", does: () => controller.arrange(toggleHidden(arrangement, key)) };
  if (track === null) return [hide, ...moves];
  const all = { text: hidden > 0 ? `Show all ${countText(track.rows)} rows` : "Show fewer rows", does: () => controller.turn(allKey(track)) };
  const query = track.kind === "query" ? queryOf(controller, track.id) : undefined;
  return [
    ...(query === undefined ? [] : queryItems(query)),
    { text: arrangement.pins.includes(key) ? "Unpin" : "Pin to the top", does: () => controller.arrange(togglePin(arrangement, key)) },
    hide,
    ...moves,
    ...(open && (hidden > 0 || picture.turned.has(allKey(track))) ? [all] : []),
  ];
}

function queryOf(controller: TimelineController, track: number): string | undefined {
  return controller.sources.find(({ at }) => at === placeOfTrack(track))?.query;
}

function queryItems(query: string): Item[] {
  const others = withoutQuery(current().params["track"], query);
  const edit = () => go("sql", { q: query, ...(others === undefined ? {} : { track: others }) });
  // the places of other queries change, and with them the keys of their tracks
  const close = () => change({ track: others, pin: undefined, hide: undefined, order: undefined, fold: undefined, slice: undefined }, { replace: false });
  return [
    { text: "Close", does: close },
    { text: "Edit the query", does: edit },
  ];
}

export function TrackMenu(props: { controller: TimelineController; line: Line; onClose: () => void }) {
  const { controller, line, onClose } = props;
  const menu = useRef<HTMLDivElement>(null);
  const { viewport } = controller.picture;
  useLayoutEffect(() => {
    menu.current?.querySelector("button")?.focus();
    const away = (event: Event) => {
      if (!menu.current?.contains(event.target as Node)) onClose();
    };
    addEventListener("pointerdown", away);
    return () => removeEventListener("pointerdown", away);
  }, []);
  const pressed = (event: KeyboardEvent) => {
    event.stopPropagation(); // keys of the timeline are not meant
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape" || event.key === "Tab") onClose();
    if (by === undefined && event.key !== "Tab") return;
    event.preventDefault();
    const items = [...(menu.current?.querySelectorAll<HTMLElement>("button:enabled") ?? [])];
    const at = items.findIndex((item) => item === document.activeElement);
    if (by !== undefined) items[(at + by + items.length) % items.length]?.focus();
  };
  const top = viewport.top(line) + 22;
  const place = top > viewport.height / 2 ? { bottom: `${viewport.height - top + 22}px` } : { top: `${top}px` };
  const title = plain(line.track?.title ?? line.group.title);
  return (
    <div class="timeline-menu" role="menu" aria-label={title} ref={menu} style={place} onKeyDown={pressed}>
      {itemsOf(controller, line).map(({ text, keys, does }) => (
        <button
          key={text}
          type="button"
          role="menuitem"
          disabled={does === null}
          onClick={() => {
            does?.();
            onClose();
          }}
        >
          {text} {keys !== undefined && <kbd>{keys}</kbd>}
        </button>
      ))}
    </div>
  );
}
