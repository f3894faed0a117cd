// The page's colours as a canvas needs them: read once, and again when light turns to dark.

import { VARIANTS, mixed, painted, parsed, written } from "../../draw/colour.ts";
import type { Paint, Rgb } from "../../draw/colour.ts";
import { FAMILIES } from "./names.ts";

/** Steps from a full slice to one that is hardly covered, or that the search leaves out. */
export const SOFTNESS = 4;
const SOFT_SHARE = 0.24;
const COLOURS = FAMILIES.length * VARIANTS;

export interface Theme {
  /** By colour of a name and softness: see `paintOf`. */
  paints: readonly Paint[];
  /** The same as pixels of an image. */
  pixels: Uint32Array;
  ground: string;
  surface: string;
  sunken: string;
  line: string;
  strong: string;
  text: string;
  muted: string;
  accent: string;
  band: string;
  found: string;
  curve: Readonly<Record<string, { line: string; fill: string }>>;
  font: string;
}

export function paintAt(colour: number, softness: number): number {
  return softness * COLOURS + colour;
}

export function readTheme(element: Element): Theme {
  const style = getComputedStyle(element);
  const of = (name: string) => parsed(style.getPropertyValue(`--${name}`));
  const surface = of("surface");
  const paints: Paint[] = [];
  for (let softness = 0; softness < SOFTNESS; softness++) {
    for (const family of FAMILIES) {
      const base = of(family);
      for (let variant = 0; variant < VARIANTS; variant++) {
        paints.push(painted(base, surface, variant, softness * SOFT_SHARE));
      }
    }
  }
  const curve = (name: string) => curveOf(of(name), surface);
  return {
    paints,
    pixels: Uint32Array.from(paints, ({ fill }) => pixelOf(parsed(fill))),
    ground: written(of("bg")),
    surface: written(surface),
    sunken: written(of("sunken")),
    line: written(of("line")),
    strong: written(of("line-strong")),
    text: written(of("text")),
    muted: written(of("muted")),
    accent: written(of("accent")),
    band: written(mixed(surface, of("sunken"), 0.6)),
    found: written(of("warn")),
    curve: {
      utilization: curve("kernel"),
      memory: curve("memory"),
      queue: curve("runtime"),
      counter: curve("mark"),
    },
    font: style.getPropertyValue("--font") || "sans-serif",
  };
}

/** The bytes of an image: red first, whatever the machine's order. */
function pixelOf({ r, g, b }: Rgb): number {
  return new Uint32Array(Uint8Array.of(r, g, b, 255).buffer)[0] as number;
}

function curveOf(colour: Rgb, surface: Rgb): { line: string; fill: string } {
  return { line: written(colour), fill: written(mixed(colour, surface, 0.68)) };
}
