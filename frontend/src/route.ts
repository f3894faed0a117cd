// The state of the page, which is completely in the URL fragment: `#/panel?name=value`.

import { useEffect, useState } from "preact/hooks";

export interface Route {
  panel: string;
  params: Readonly<Record<string, string>>;
}

export function parseRoute(hash: string): Route {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const params = Object.fromEntries(new URLSearchParams(query));
  return { panel: decoded(path), params };
}

function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path; // somebody typed a lone "%": no panel has that name
  }
}

export function formatRoute(route: Route): string {
  const query = new URLSearchParams(route.params).toString();
  return `#/${encodeURIComponent(route.panel)}${query ? `?${query}` : ""}`;
}

/** Delay of writing the URL in ms, since browsers limit how often a page may do that. */
const WRITTEN_AFTER_MS = 200;

/** A route that is shown but not yet written to the URL, and the URL that it replaces. */
let ahead: { route: Route; from: string } | null = null;
let timer: ReturnType<typeof setTimeout> | undefined;
const listeners = new Set<() => void>();

export function current(): Route {
  return pending() ?? parseRoute(location.hash);
}

/** Returns the pending route, unless the URL has changed since. */
function pending(): Route | null {
  return ahead !== null && ahead.from === location.hash ? ahead.route : null;
}

/** Returns the URL of a panel; it keeps the chosen trace, and no other parameters. */
export function link(panel: string, params: Record<string, string> = {}): string {
  const { trace } = current().params;
  return formatRoute({ panel, params: trace === undefined ? params : { trace, ...params } });
}

export function go(panel: string, params: Record<string, string> = {}): void {
  const hash = link(panel, params);
  settle();
  move(hash);
}

/** Adds an entry to the history and shows it immediately. */
function move(hash: string): void {
  location.hash = hash;
  moved();
}

/** Goes to a URL fragment that another page links to, unless it is shown. */
export function followed(hash: string): void {
  if (hash === formatRoute(current())) return;
  settle();
  move(hash);
}

/**
 * Changes some parameters of the shown panel; undefined removes one. Small moves (zoom, scroll,
 * typing) replace the entry of the history in place of adding one.
 */
export function change(
  params: Record<string, string | undefined>,
  { replace = true }: { replace?: boolean } = {},
): void {
  const route = current();
  const merged: Record<string, string> = { ...route.params };
  for (const [name, value] of Object.entries(params)) {
    if (value === undefined) delete merged[name];
    else merged[name] = value;
  }
  const next = { panel: route.panel, params: merged };
  if (formatRoute(next) === formatRoute(route)) return;
  if (!replace) {
    settle();
    move(formatRoute(next));
    return;
  }
  ahead = { route: next, from: location.hash };
  timer ??= setTimeout(settle, WRITTEN_AFTER_MS);
  for (const told of [...listeners]) told();
}

/** Writes the pending route to the URL. */
function settle(): void {
  clearTimeout(timer);
  timer = undefined;
  const route = pending();
  ahead = null;
  if (route !== null) rewrite(formatRoute(route), history.state);
}

/** This document's URL; a `srcdoc` frame would otherwise resolve links against the outer page. */
function home(): string {
  return location.href.split("#", 1)[0] ?? "";
}

function rewrite(hash: string, state: unknown): void {
  try {
    history.replaceState(state, "", home() + hash);
  } catch {
    location.hash = hash; // the browser writes no history for this document, or not so often
  }
}

/** Handles clicks on links, which in a `srcdoc` frame would open the outer page. */
function clicked(event: MouseEvent): void {
  settle();
  const hash = (event.target as Element | null)?.closest?.("a[href^='#']")?.getAttribute("href");
  const isPlain = event.button === 0 && !(event.ctrlKey || event.metaKey || event.shiftKey);
  const isForeign = document.baseURI.split("#", 1)[0] !== home();
  if (!hash || !isPlain || !isForeign) return;
  event.preventDefault();
  location.hash = hash;
}

/** The number of the current history entry; going back restores its number. */
export function entry(): number {
  const state: unknown = history.state;
  const known = typeof state === "object" && state !== null && "entry" in state && state.entry;
  if (typeof known === "number") return known;
  const fresh = performance.timeOrigin + performance.now();
  rewrite(location.hash || "#/", { entry: fresh });
  return fresh;
}

/** Shows what the URL says now, in place of a route that was pending on another URL. */
function moved(): void {
  if (pending() === null) {
    clearTimeout(timer);
    timer = undefined;
    ahead = null;
  }
  for (const told of [...listeners]) told();
}

/** Follows links and the browser's history, whose events come a turn after the URL has changed. */
export function followUrl(): void {
  addEventListener("hashchange", moved);
  document.addEventListener("click", clicked, { capture: true });
  addEventListener("pagehide", settle);
}

/** Returns the current route; follows links and the browser's history. */
export function useRoute(): Route {
  const [route, set] = useState(current);
  useEffect(() => {
    const update = () => set((shown) => (formatRoute(shown) === formatRoute(current()) ? shown : current()));
    listeners.add(update);
    followUrl();
    update(); // the address may have changed since the first look at it
    return () => void listeners.delete(update);
  }, []);
  return route;
}
