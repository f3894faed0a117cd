// Colours of slices: the category's colour, varied by name, with text of sufficient contrast.

export interface Rgb {
  readonly r: number;
  readonly g: number;
  readonly b: number;
}

/** The colours of a slice: its fill, text and background. */
export interface Paint {
  fill: string;
  text: string;
}

/** A 32-bit hash of a text (FNV-1a). */
export function hash(text: string): number {
  let found = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) {
    found = Math.imul(found ^ text.charCodeAt(at), 0x01000193);
  }
  return found >>> 0;
}

/** Parses `#rgb`, `#rrggbb` or `rgb(1, 2, 3)`. */
export function parseColour(colour: string): Rgb {
  const hex = /^#([0-9a-f]{3}|[0-9a-f]{6})$/i.exec(colour.trim())?.[1];
  if (hex !== undefined) {
    const width = hex.length / 3;
    const [r = 0, g = 0, b = 0] = [0, 1, 2].map((at) => {
      const digits = hex.slice(at * width, (at + 1) * width);
      return Number.parseInt(width === 1 ? digits + digits : digits, 16);
    });
    return { r, g, b };
  }
  const [r = 0, g = 0, b = 0] = (colour.match(/[\d.]+/g) ?? []).map(Number);
  return { r, g, b };
}

export function mixColours(one: Rgb, other: Rgb, share: number): Rgb {
  const of = (a: number, b: number) => a + (b - a) * share;
  return { r: of(one.r, other.r), g: of(one.g, other.g), b: of(one.b, other.b) };
}

export function colourText({ r, g, b }: Rgb): string {
  return `rgb(${Math.round(r)} ${Math.round(g)} ${Math.round(b)})`;
}

/** Relative luminance and contrast, as WCAG defines them. */
export function luminance({ r, g, b }: Rgb): number {
  const [x = 0, y = 0, z = 0] = [r, g, b].map((value) => {
    const share = value / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * x + 0.7152 * y + 0.0722 * z;
}

export function contrast(one: Rgb, other: Rgb): number {
  const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b) as [number, number];
  return (high + 0.05) / (low + 0.05);
}

/** The colour with its hue rotated by degrees and its lightness changed by a ratio. */
export function shiftColour(colour: Rgb, degrees: number, lighter: number): Rgb {
  const [h, s, l] = toHsl(colour);
  return fromHsl((h + degrees / 360 + 1) % 1, s, Math.min(Math.max(l + lighter, 0.08), 0.92));
}

function toHsl({ r, g, b }: Rgb): [number, number, number] {
  const [x, y, z] = [r / 255, g / 255, b / 255];
  const high = Math.max(x, y, z);
  const range = high - Math.min(x, y, z);
  const l = high - range / 2;
  if (range === 0) return [0, 0, l];
  const s = range / (1 - Math.abs(2 * l - 1));
  const h = high === x ? (y - z) / range + 6 : high === y ? (z - x) / range + 2 : (x - y) / range + 4;
  return [(h / 6) % 1, s, l];
}

function fromHsl(h: number, s: number, l: number): Rgb {
  const channel = (shift: number) => {
    const k = (shift + h * 12) % 12;
    return 255 * (l - s * Math.min(l, 1 - l) * Math.max(-1, Math.min(k - 3, 9 - k, 1)));
  };
  return { r: channel(0), g: channel(8), b: channel(4) };
}

const HUES = 5;
const SHADES = 3;
/** The number of colours per category. */
export const VARIANTS = HUES * SHADES;
/** The minimum contrast between text and slice (WCAG AA). */
const READABLE = 4.5;
const DARK: Rgb = { r: 20, g: 21, b: 23 };
const LIGHT: Rgb = { r: 255, g: 255, b: 255 };

/** A colour of a category with its text colour; `soft` is the share of the background. */
export function paintFor(base: Rgb, ground: Rgb, variant: number, soft: number): Paint {
  const hue = ((variant % HUES) - (HUES - 1) / 2) * 7;
  const shade = (Math.floor(variant / HUES) % SHADES) - (SHADES - 1) / 2;
  let fill = mixColours(shiftColour(base, hue, shade * 0.055), ground, soft);
  const text = contrast(fill, LIGHT) >= contrast(fill, DARK) ? LIGHT : DARK;
  const away = text === LIGHT ? DARK : LIGHT;
  for (let turns = 0; turns < 12 && contrast(fill, text) < READABLE; turns++) {
    fill = mixColours(fill, away, 0.06);
  }
  return { fill: colourText(fill), text: colourText(text) };
}
