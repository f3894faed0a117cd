// A number of the advice as a way to its slices in the timeline.

import "./numbers.css";
import type { ComponentChildren } from "preact";
import type { NumberLink as Link } from "../../data/numbers.ts";
import { link } from "../../route.ts";

/** The children as they are where the number stands for no slices. */
export function NumberLink(props: { to: Link | null | undefined; children: ComponentChildren }) {
  const { to, children } = props;
  if (!to) return <>{children}</>;
  return <a class="number-link" href={link("timeline", { of: to.of })} title={`In the timeline: ${to.text}`}>{children}</a>;
}
