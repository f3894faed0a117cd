// All colours of the style sheet at once, for what is painted on a canvas.

import { useMemo } from "preact/hooks";
import type { Palette } from "../draw/icicle.ts";
import { colour, useTheme } from "./theme.ts";

const NAMES = [
  "bg", "surface", "sunken", "line", "line-strong", "text", "muted", "accent", "accent-soft", "good",
  "warn", "bad", "focus", "kernel", "collective", "copy", "runtime", "operator", "python", "loading",
  "idle", "other", "memory", "mark", "slower", "faster", "font", "mono",
];

/** The palette, anew whenever the colours change. */
export function usePalette(): Palette {
  const theme = useTheme();
  return useMemo(() => Object.fromEntries(NAMES.map((name) => [name, colour(name)])), [theme]);
}
