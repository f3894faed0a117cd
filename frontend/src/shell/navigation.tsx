// The panels: those that answer most questions, and all others in a fold. While `g` waits for a letter
// the letters show. A panel that has nothing for the trace is dim and says why.

import { useEffect, useRef, useState } from "preact/hooks";
import { inOrder } from "../panels/index.ts";
import type { Panel } from "../panels/panel.ts";
import { link } from "../route.ts";
import { store, stored } from "../parts/controls/stored.ts";

const GROUPS = [
  ["answer", "Answer"],
  ["time", "Time"],
  ["code", "Code"],
  ["device", "Device"],
  ["job", "Job"],
  ["memory", "Memory"],
  ["more", "More"],
] as const;

interface Props {
  panels: readonly Panel[];
  /** The shown panel's name; empty while none is. */
  shown: string;
  letters: ReadonlyMap<string, string>;
  isGoing: boolean;
  /** Why a panel has nothing for the trace; empty if it has something. */
  missingIn: (panel: Panel) => string;
}

export function Navigation(props: Props) {
  const { panels, shown, isGoing } = props;
  const nav = useRef<HTMLElement>(null);
  const { first, others } = inOrder(panels);
  const [isOpen, setOpen] = useFold(others.some((panel) => panel.name === shown));
  useEffect(() => {
    const chosen = nav.current?.querySelector("[aria-current]");
    chosen?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [shown]);
  return (
    <nav ref={nav} aria-label="Panels" data-going={isGoing}>
      <div class="nav-first">
        {first.map((panel) => <PanelLink key={panel.name} panel={panel} {...props} />)}
      </div>
      <button type="button" class="quiet nav-fold" aria-expanded={isOpen || isGoing} aria-controls="all-tables" onClick={() => setOpen(!isOpen)}>
        All tables
      </button>
      <div id="all-tables" class="nav-others" hidden={!(isOpen || isGoing)}>
        {GROUPS.map(([group, title]) => {
          const inGroup = others.filter((panel) => panel.group === group);
          return inGroup.length === 0 ? null : (
            <section key={group} aria-label={title}>
              <h2 aria-hidden="true">{title}</h2>
              {inGroup.map((panel) => <PanelLink key={panel.name} panel={panel} {...props} />)}
            </section>
          );
        })}
      </div>
    </nav>
  );
}

const PLACE = "tables";

/** Whether the fold is open: as it was left, and whenever the shown panel is in it. */
function useFold(isShownWithin: boolean): [boolean, (isOpen: boolean) => void] {
  const [isOpen, set] = useState(() => isShownWithin || stored(PLACE) === "open");
  useEffect(() => {
    if (isShownWithin) set(true);
  }, [isShownWithin]);
  const choose = (next: boolean) => {
    store(PLACE, next ? "open" : "closed");
    set(next);
  };
  return [isOpen, choose];
}

function PanelLink(props: Props & { panel: Panel }) {
  const { panel } = props;
  const letter = props.letters.get(panel.name);
  const missing = props.missingIn(panel);
  return (
    <a
      href={link(panel.name)}
      aria-current={panel.name === props.shown ? "page" : undefined}
      {...(letter ? { "aria-keyshortcuts": `g ${letter}` } : {})}
      {...(missing ? { "data-empty": true, title: missing, "aria-description": missing } : {})}
    >
      <span>{panel.title}</span>
      {letter && <kbd aria-hidden="true">{letter}</kbd>}
    </a>
  );
}
