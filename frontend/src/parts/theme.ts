// The colours of style.css for what is drawn by script, and when they change.

import { useEffect, useState } from "preact/hooks";

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
