// The page's colours for the canvas, read again when the colour scheme changes.

import { VARIANTS, mixColours, paintFor, parseColour, colourText } from "../../../draw/colour.ts";
import type { Paint, Rgb } from "../../../draw/colour.ts";
import { FAMILIES } from "./names.ts";

/** The number of colour steps from full to faint. */
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
  const of = (name: string) => parseColour(style.getPropertyValue(`--${name}`));
  const surface = of("surface");
  const paints: Paint[] = [];
  for (let softness = 0; softness < SOFTNESS; softness++) {
    for (const family of FAMILIES) {
      const base = of(family);
      for (let variant = 0; variant < VARIANTS; variant++) {
        paints.push(paintFor(base, surface, variant, softness * SOFT_SHARE));
      }
    }
  }
  const curve = (name: string) => curveOf(of(name), surface);
  return {
    paints,
    pixels: Uint32Array.from(paints, ({ fill }) => pixelOf(parseColour(fill))),
    ground: colourText(of("bg")),
    surface: colourText(surface),
    sunken: colourText(of("sunken")),
    line: colourText(of("line")),
    strong: colourText(of("line-strong")),
    text: colourText(of("text")),
    muted: colourText(of("muted")),
    accent: colourText(of("accent")),
    band: colourText(mixColours(surface, of("sunken"), 0.6)),
    found: colourText(of("warn")),
    curve: {
      utilization: curve("kernel"),
      flops: curve("operator"),
      query: curve("mark"),
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
  return { line: colourText(colour), fill: colourText(mixColours(colour, surface, 0.68)) };
}
