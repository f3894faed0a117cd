// The names of groups and tracks beside the canvas; pinned ones do not scroll.

import { useEffect, useRef, useState } from "preact/hooks";
import type { TimelineController } from "../input/controller.ts";
import { useTrackDrag } from "./track-drag.ts";
import { TrackMenu } from "./track-menu.tsx";
import { TrackName } from "./track-name.tsx";
import { TrackTools } from "./track-tools.tsx";

export function Gutter(props: { controller: TimelineController }) {
  const { controller } = props;
  const names = useRef<HTMLDivElement>(null);
  const own = useRef(0);
  const { picture } = controller;
  const { viewport } = picture;
  const [menu, openMenu] = useState<string | null>(null);
  const [fixed, fix] = useState(viewport.fixed);
  const drag = useTrackDrag(controller);
  useEffect(
    () =>
      picture.follow(() => {
        if (names.current === null) return;
        fix(viewport.fixed);
        names.current.scrollTop = viewport.scroll;
        own.current = names.current.scrollTop;
      }),
    [picture],
  );
  const scrolled = () => {
    // a name that was reached by Tab is scrolled to by the browser, and the picture with it
    if (names.current === null || Math.abs(names.current.scrollTop - own.current) <= 1) return;
    viewport.scrollTo(names.current.scrollTop);
    picture.redraw();
  };
  const wheel = (event: WheelEvent) => {
    viewport.scrollTo(viewport.scroll + event.deltaY);
    picture.redraw();
  };
  const { lines, height } = viewport.layout;
  const shown = (isFixed: boolean) =>
    lines
      .filter((line) => line.y < fixed === isFixed)
      .map((line) => (
        <TrackName
          key={line.key}
          line={line}
          top={isFixed ? line.y : line.y - fixed}
          controller={controller}
          drag={drag}
          onMenu={() => openMenu(line.key)}
        />
      ));
  const opened = lines.find((line) => line.key === menu);
  const close = () => {
    openMenu(null);
    document.querySelector<HTMLElement>(`[data-menu="${menu}"]`)?.focus();
  };
  return (
    <>
      <div class="timeline-gutter" style={{ "--fixed": `${fixed}px` }}>
        <TrackTools controller={controller} />
        <div class="timeline-pins" role="list" aria-label="Pinned tracks" hidden={fixed === 0}>{shown(true)}</div>
        <div class="timeline-names" ref={names} onScroll={scrolled} onWheel={wheel} tabIndex={-1}>
          <div role="list" aria-label="Tracks" style={{ height: `${height - fixed}px` }}>{shown(false)}</div>
        </div>
        {lines.length === 0 && <p class="muted timeline-none">No track has this name.</p>}
      </div>
      {opened && <TrackMenu key={opened.key} controller={controller} line={opened} onClose={close} />}
    </>
  );
}
