// The panels, in groups; while `g` is pressed their letters show.

import { useEffect, useRef } from "preact/hooks";
import type { Panel } from "../panels/panel.ts";
import { link } from "../route.ts";

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
  shown: string;
  letters: ReadonlyMap<string, string>;
  isGoing: boolean;
}

export function Navigation(props: Props) {
  const nav = useRef<HTMLElement>(null);
  useEffect(() => {
    const chosen = nav.current?.querySelector("[aria-current]");
    chosen?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [props.shown]);
  return (
    <nav ref={nav} aria-label="Panels" data-going={props.isGoing}>
      {GROUPS.map(([group, title]) => {
        const panels = props.panels.filter((panel) => panel.group === group);
        return panels.length === 0 ? null : (
          <section key={group} aria-label={title}>
            {group !== "answer" && <h2 aria-hidden="true">{title}</h2>}
            {panels.map((panel) => (
              <PanelLink key={panel.name} panel={panel} {...props} />
            ))}
          </section>
        );
      })}
    </nav>
  );
}

function PanelLink(props: Props & { panel: Panel }) {
  const { name, title } = props.panel;
  const letter = props.letters.get(name);
  return (
    <a
      href={link(name)}
      aria-current={name === props.shown ? "page" : undefined}
      {...(letter ? { "aria-keyshortcuts": `g ${letter}` } : {})}
    >
      <span>{title}</span>
      {letter && <kbd aria-hidden="true">{letter}</kbd>}
    </a>
  );
}
