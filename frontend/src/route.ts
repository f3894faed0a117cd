// What is shown, all of it in the address: `#/panel?name=value`. A link is an ordinary link.

import { useEffect, useState } from "preact/hooks";

export interface Route {
  panel: string;
  params: Readonly<Record<string, string>>;
}

export function read(hash: string): Route {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const params = Object.fromEntries(new URLSearchParams(query));
  return { panel: decodeURIComponent(path), params };
}

export function write(route: Route): string {
  const query = new URLSearchParams(route.params).toString();
  return `#/${encodeURIComponent(route.panel)}${query ? `?${query}` : ""}`;
}

export function current(): Route {
  return read(location.hash);
}

/** The address of a panel. The chosen trace goes with it; other parameters only if they are given. */
export function link(panel: string, params: Record<string, string> = {}): string {
  const { trace } = current().params;
  return write({ panel, params: trace === undefined ? params : { trace, ...params } });
}

export function go(panel: string, params: Record<string, string> = {}): void {
  location.hash = link(panel, params);
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
  const hash = write({ panel: route.panel, params: merged });
  if (hash === location.hash) return;
  if (replace) {
    history.replaceState(null, "", hash);
    dispatchEvent(new HashChangeEvent("hashchange"));
  } else {
    location.hash = hash;
  }
}

export function useRoute(): Route {
  const [route, set] = useState(current);
  useEffect(() => {
    const update = () => set(current());
    addEventListener("hashchange", update);
    return () => removeEventListener("hashchange", update);
  }, []);
  return route;
}
