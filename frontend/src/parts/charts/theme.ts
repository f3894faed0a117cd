// The colours of style.css for drawing, and their changes.

import { useEffect, useState, useMemo } from "preact/hooks";
import type { Palette } from "../../draw/icicle.ts";

/** The value of a variable of style.css, such as `kernel` or `line-strong`. */
export function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

/** A number that changes whenever the colours do: with the system's scheme, or the page's own. */
export function useTheme(): number {
  const [version, set] = useState(0);
  useEffect(() => {
    const changed = () => set((known) => known + 1);
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    const watch = new MutationObserver(changed);
    scheme.addEventListener("change", changed);
    watch.observe(document.documentElement, { attributes: true });
    return () => {
      scheme.removeEventListener("change", changed);
      watch.disconnect();
    };
  }, []);
  return version;
}

const NAMES = [
  "bg", "surface", "sunken", "line", "line-strong", "text", "muted", "accent", "accent-soft", "good",
  "warn", "bad", "focus", "kernel", "collective", "copy", "runtime", "operator", "python", "loading",
  "idle", "other", "memory", "mark", "slower", "faster",
  "achieved-least", "achieved-low", "achieved-half", "achieved-high", "achieved-most", "font", "mono",
];

/** The palette, anew whenever the colours change. */
export function usePalette(): Palette {
  const theme = useTheme();
  return useMemo(() => Object.fromEntries(NAMES.map((name) => [name, colour(name)])), [theme]);
}
