// The palette of style.css: colours that can stand side by side are told apart, also by readers who
// see few colours, and texts can be read on every ground.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { contrast, parseColour } from "./colour.ts";
import type { Rgb } from "./colour.ts";
import { ACHIEVED, UNKNOWN_COLOUR } from "../panels/modules/profile/profile.ts";

type Triple = readonly [number, number, number];
type Matrix = readonly [Triple, Triple, Triple];

const CATEGORIES = [
  "kernel", "collective", "copy", "runtime", "operator", "python", "loading", "idle", "other", "memory", "mark",
];
/** The least CIEDE2000 difference of two categories; 2.3 is a difference that is just seen. */
const LEAST_DIFFERENCE = 11;
/** The least contrast of marks and of texts, as WCAG 2.2 has them (1.4.11, 1.4.3). */
const MARK_CONTRAST = 3;
const TEXT_CONTRAST = 4.5;

const IDENTITY: Matrix = [[1, 0, 0], [0, 1, 0], [0, 0, 1]];
/** Linear RGB as dichromats see it: Machado, Oliveira and Fernandes 2009, severity 1. */
const VISIONS: Readonly<Record<string, Matrix>> = {
  normal: IDENTITY,
  protanopia: [
    [0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998],
  ],
  deuteranopia: [
    [0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881],
  ],
  tritanopia: [
    [1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039],
  ],
};
/** Linear sRGB to XYZ under D65 (IEC 61966-2-1). */
const TO_XYZ: Matrix = [
  [0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.072175], [0.0193339, 0.119192, 0.9503041],
];

const times = (matrix: Matrix, [x, y, z]: Triple): Triple => {
  const row = ([a, b, c]: Triple) => a * x + b * y + c * z;
  return [row(matrix[0]), row(matrix[1]), row(matrix[2])];
};

function linear({ r, g, b }: Rgb): Triple {
  const one = (value: number) => (value <= 10.31475 ? value / 3294.6 : ((value / 255 + 0.055) / 1.055) ** 2.4);
  return [one(r), one(g), one(b)];
}

/** CIE L*a*b* of linear RGB (CIE 15:2004). */
function lab(colour: Triple): Triple {
  const clipped = colour.map((value) => Math.min(1, Math.max(0, value))) as unknown as Triple;
  const white = times(TO_XYZ, [1, 1, 1]);
  const root = (value: number) => (value > 216 / 24389 ? Math.cbrt(value) : (24389 / 27 * value + 16) / 116);
  const [x, y, z] = times(TO_XYZ, clipped).map((value, at) => root(value / (white[at] as number))) as unknown as Triple;
  return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
}

/** The difference of two colours (CIEDE2000, as Sharma, Wu and Dalal 2005 write it). */
function difference([l1, a1, b1]: Triple, [l2, a2, b2]: Triple): number {
  const radians = (degrees: number) => (degrees * Math.PI) / 180;
  const hue = (a: number, b: number) => (a === 0 && b === 0 ? 0 : ((Math.atan2(b, a) * 180) / Math.PI + 360) % 360);
  const meanChroma = (Math.hypot(a1, b1) + Math.hypot(a2, b2)) / 2;
  const grey = (chroma: number) => Math.sqrt(chroma ** 7 / (chroma ** 7 + 25 ** 7));
  const stretch = 1 + 0.5 * (1 - grey(meanChroma));
  const [c1, c2] = [Math.hypot(a1 * stretch, b1), Math.hypot(a2 * stretch, b2)];
  const [h1, h2] = [hue(a1 * stretch, b1), hue(a2 * stretch, b2)];
  const isGrey = c1 * c2 === 0;
  const turn = h2 - h1;
  const hueTurn = isGrey ? 0 : turn > 180 ? turn - 360 : turn < -180 ? turn + 360 : turn;
  const hueChange = 2 * Math.sqrt(c1 * c2) * Math.sin(radians(hueTurn / 2));
  const sum = h1 + h2;
  const far = Math.abs(turn) > 180;
  const meanHue = isGrey ? sum : far ? (sum < 360 ? sum + 360 : sum - 360) / 2 : sum / 2;
  const [light, chroma] = [(l1 + l2) / 2, (c1 + c2) / 2];
  const cosine = (factor: number, shift: number) => Math.cos(radians(factor * meanHue + shift));
  const t = 1 - 0.17 * cosine(1, -30) + 0.24 * cosine(2, 0) + 0.32 * cosine(3, 6) - 0.2 * cosine(4, -63);
  const inLight = (l2 - l1) / (1 + (0.015 * (light - 50) ** 2) / Math.sqrt(20 + (light - 50) ** 2));
  const inChroma = (c2 - c1) / (1 + 0.045 * chroma);
  const inHue = hueChange / (1 + 0.015 * chroma * t);
  const rotation = -Math.sin(radians(60 * Math.exp(-(((meanHue - 275) / 25) ** 2)))) * 2 * grey(chroma);
  return Math.sqrt(inLight ** 2 + inChroma ** 2 + inHue ** 2 + rotation * inChroma * inHue);
}

const [LIGHT = "", DARK = ""] = readFileSync(new URL("../style.css", import.meta.url), "utf8").split('[data-theme="dark"]');

/** The colours of a theme by the name of their variable. */
function palette(sheet: string): ReadonlyMap<string, Rgb> {
  const found = [...sheet.matchAll(/--([a-z-]+): (#[0-9a-f]{6});/g)];
  return new Map(found.map(([, name = "", colour = ""]) => [name, parseColour(colour)]));
}

const THEMES = [["light", palette(LIGHT)], ["dark", palette(DARK)]] as const;

test("the difference of colours is that of the paper's examples", () => {
  const pairs: [Triple, Triple, number][] = [
    [[50, 2.6772, -79.7751], [50, 0, -82.7485], 2.0425],
    [[50, 2.49, -0.001], [50, -2.49, 0.0009], 7.1792],
    [[60.2574, -34.0099, 36.2677], [60.4626, -34.1751, 39.4387], 1.2644],
    [[2.0776, 0.0795, -1.135], [0.9033, -0.0636, -0.5514], 0.9082],
  ];
  for (const [one, other, expected] of pairs) {
    assert.ok(Math.abs(difference(one, other) - expected) < 5e-5, `${difference(one, other)} for ${expected}`);
  }
});

/** Fails if two of some colours look too alike to someone. */
function assertToldApart(names: readonly string[]): void {
  for (const [theme, colours] of THEMES) {
    for (const [vision, matrix] of Object.entries(VISIONS)) {
      const seen = names.map((name) => lab(times(matrix, linear(colours.get(name) as Rgb))));
      for (const [at, one] of seen.entries()) {
        for (const [to, other] of seen.entries()) {
          if (at >= to) continue;
          const told = `${names[at]} and ${names[to]}, ${theme}, ${vision}: ${difference(one, other)}`;
          assert.ok(difference(one, other) >= LEAST_DIFFERENCE, told);
        }
      }
    }
  }
}

test("any two categories are told apart, by whoever sees few colours too", () => {
  assertToldApart(CATEGORIES);
});

test("any two classes of the achieved share are told apart, and from what is unknown", () => {
  assertToldApart([...ACHIEVED.map(({ colour }) => colour), UNKNOWN_COLOUR]);
  for (const [theme, colours] of THEMES) {
    for (const { colour } of ACHIEVED) {
      const found = contrast(colours.get(colour) as Rgb, colours.get("surface") as Rgb);
      assert.ok(found >= MARK_CONTRAST, `${colour}, ${theme}: ${found}`);
    }
  }
});

test("marks stand out from their ground, and texts can be read on it", () => {
  for (const [theme, colours] of THEMES) {
    const of = (name: string) => colours.get(name) as Rgb;
    for (const name of CATEGORIES.filter((one) => one !== "idle")) { // idle: nothing is to be seen
      assert.ok(contrast(of(name), of("surface")) >= MARK_CONTRAST, `${name}, ${theme}`);
    }
    for (const name of ["text", "muted", "accent", "good", "warn", "bad"]) {
      const soft = colours.has(`${name}-soft`) ? `${name}-soft` : "accent-soft"; // of what is chosen
      for (const ground of ["bg", "surface", "sunken", soft]) {
        const found = contrast(of(name), of(ground));
        assert.ok(found >= TEXT_CONTRAST, `${name} on ${ground}, ${theme}: ${found}`);
      }
    }
  }
});
