// The page in TensorBoard's tab: TensorBoard's URL tells what it shows, and it has TensorBoard's colours.

import { useEffect } from "preact/hooks";
import { current, followed, formatRoute, type Route } from "../route.ts";

/** Name of our parameter in TensorBoard's URL, as its own library for plugins writes them. */
const PARAMETER = "p.selftime.at";
const TAB = "selftime";

/** Our URL fragment in that of TensorBoard, such as `#selftime&p.selftime.at=…`; null without one. */
export function fragmentIn(outer: string): string | null {
  for (const part of outer.replace(/^#/, "").split("&")) {
    const [name, value] = part.split("=", 2);
    if (name === PARAMETER && value) return decoded(value);
  }
  return null;
}

function decoded(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null; // a damaged link opens what is shown first
  }
}

/** TensorBoard's URL fragment with ours in it; null while another tab is shown. */
export function fragmentWith(outer: string, own: string): string | null {
  const parts = outer.replace(/^#/, "").split("&");
  if (!parts.includes(TAB)) return null;
  const kept = parts.filter((part) => !part.startsWith(`${PARAMETER}=`));
  return `#${[...kept, `${PARAMETER}=${encodeURIComponent(own)}`].join("&")}`;
}

/** TensorBoard's window; null if this page is not in it, or in a frame that may not look at it. */
function outerWindow(): Window | null {
  if (window.parent === window || !new URL(import.meta.url).pathname.includes("/data/plugin/")) return null;
  try {
    return window.parent.document.body === null ? null : window.parent;
  } catch {
    return null; // another site frames TensorBoard's pages
  }
}

/** Before anything is drawn: goes to what TensorBoard's URL tells, unless the page's own does. */
export function openOuterFragment(): void {
  const own = fragmentIn(outerWindow()?.location.hash ?? "");
  if (own !== null && location.hash === "") location.hash = own;
}

/** Keeps what is shown in TensorBoard's URL, and follows a link that is opened there. */
export function useOuterFragment(route: Route): void {
  const own = formatRoute(route);
  useEffect(() => {
    const outer = outerWindow();
    if (outer === null) return undefined;
    const write = () => {
      const hash = fragmentWith(outer.location.hash, formatRoute(current()));
      if (hash === null || hash === outer.location.hash) return;
      outer.history.replaceState(outer.history.state, "", outer.location.href.split("#", 1)[0] + hash);
    };
    const follow = () => {
      const linked = fragmentIn(outer.location.hash);
      if (linked === null) write(); // the tab was left, and is shown again
      else followed(linked);
    };
    write();
    outer.addEventListener("hashchange", follow);
    return () => outer.removeEventListener("hashchange", follow);
  }, [own]);
}

/** Whether TensorBoard is dark; null outside of it. */
export function isOuterDark(): boolean | null {
  return outerWindow()?.document.body.classList.contains("dark-mode") ?? null;
}

/** Calls a function whenever TensorBoard's colours change; returns one that ends it. */
export function onOuterColours(told: () => void): () => void {
  const body = outerWindow()?.document.body;
  if (body === undefined) return () => undefined;
  const watch = new MutationObserver(told);
  watch.observe(body, { attributes: true, attributeFilter: ["class"] });
  return () => watch.disconnect();
}
