// What is shown, all of it in the address: `#/panel?name=value`. A link is an ordinary link.

import { useEffect, useState } from "preact/hooks";

export interface Route {
  panel: string;
  params: Readonly<Record<string, string>>;
}

export function read(hash: string): Route {
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

export function write(route: Route): string {
  const query = new URLSearchParams(route.params).toString();
  return `#/${encodeURIComponent(route.panel)}${query ? `?${query}` : ""}`;
}

/** Small moves come faster than browsers let a page write its address. */
const WRITTEN_AFTER_MS = 200;

/** What is shown already and stands in the address a moment later, in place of `from`. */
let ahead: { route: Route; from: string } | null = null;
let timer: ReturnType<typeof setTimeout> | undefined;
const listeners = new Set<() => void>();

export function current(): Route {
  return pending() ?? read(location.hash);
}

/** What is ahead, unless the address has become another since: then that is meant. */
function pending(): Route | null {
  return ahead !== null && ahead.from === location.hash ? ahead.route : null;
}

/** The address of a panel. The chosen trace goes with it; other parameters only if they are given. */
export function link(panel: string, params: Record<string, string> = {}): string {
  const { trace } = current().params;
  return write({ panel, params: trace === undefined ? params : { trace, ...params } });
}

export function go(panel: string, params: Record<string, string> = {}): void {
  const hash = link(panel, params);
  settle();
  move(hash);
}

/** A new entry of the history, shown at once: the browser tells of it only later. */
function move(hash: string): void {
  location.hash = hash;
  moved();
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
  if (write(next) === write(route)) return;
  if (!replace) {
    settle();
    move(write(next));
    return;
  }
  ahead = { route: next, from: location.hash };
  timer ??= setTimeout(settle, WRITTEN_AFTER_MS);
  for (const told of [...listeners]) told();
}

/** Writes what is ahead of the address into it. */
function settle(): void {
  clearTimeout(timer);
  timer = undefined;
  const route = pending();
  ahead = null;
  if (route !== null) rewrite(write(route), history.state);
}

/** This document's address. A frame written into another page has that page's as its base. */
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

/** Before a link is followed; in a frame written into another page it would lead to that page. */
function clicked(event: MouseEvent): void {
  settle();
  const hash = (event.target as Element | null)?.closest?.("a[href^='#']")?.getAttribute("href");
  const isPlain = event.button === 0 && !(event.ctrlKey || event.metaKey || event.shiftKey);
  const isForeign = document.baseURI.split("#", 1)[0] !== home();
  if (!hash || !isPlain || !isForeign) return;
  event.preventDefault();
  location.hash = hash;
}

/** The number of the shown entry of the history: going back finds the number it had. */
export function entry(): number {
  const state: unknown = history.state;
  const known = typeof state === "object" && state !== null && "entry" in state && state.entry;
  if (typeof known === "number") return known;
  const fresh = performance.timeOrigin + performance.now();
  rewrite(location.hash || "#/", { entry: fresh });
  return fresh;
}

/** Follows links and the keys of the history. */
function moved(): void {
  clearTimeout(timer);
  timer = undefined;
  ahead = null;
  for (const told of [...listeners]) told();
}

export function useRoute(): Route {
  const [route, set] = useState(current);
  useEffect(() => {
    const update = () => set((shown) => (write(shown) === write(current()) ? shown : current()));
    listeners.add(update);
    addEventListener("hashchange", moved);
    document.addEventListener("click", clicked, { capture: true });
    addEventListener("pagehide", settle);
    update(); // the address may have changed since the first look at it
    return () => void listeners.delete(update);
  }, []);
  return route;
}
