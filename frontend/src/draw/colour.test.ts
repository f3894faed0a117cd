import assert from "node:assert/strict";
import { test } from "node:test";
import { VARIANTS, contrast, hash, luminance, mixColours, paintFor, parseColour, shiftColour, colourText } from "./colour.ts";

const LIGHT = parseColour("#ffffff");
const DARK = parseColour("#1e2023");

test("colours are read as style sheets write them", () => {
  assert.deepEqual(parseColour("#fff"), { r: 255, g: 255, b: 255 });
  assert.deepEqual(parseColour(" #3a7d44 "), { r: 58, g: 125, b: 68 });
  assert.deepEqual(parseColour("rgb(1, 2, 3)"), { r: 1, g: 2, b: 3 });
  assert.deepEqual(parseColour(colourText({ r: 9, g: 8, b: 7 })), { r: 9, g: 8, b: 7 });
});

test("contrast is that of WCAG", () => {
  assert.equal(luminance(LIGHT), 1);
  assert.equal(contrast(LIGHT, parseColour("#000")), 21);
  assert.ok(Math.abs(contrast(LIGHT, parseColour("#767676")) - 4.54) < 0.01);
});

test("a turn of the hue keeps what it does not turn", () => {
  assert.equal(colourText(shiftColour(parseColour("#3a7d44"), 0, 0)), colourText(parseColour("#3a7d44")));
  assert.equal(colourText(shiftColour(parseColour("#888"), 90, 0)), colourText(parseColour("#888")));
  assert.equal(colourText(shiftColour(parseColour("#ff0000"), 120, 0)), "rgb(0 255 0)");
  assert.equal(colourText(mixColours(LIGHT, parseColour("#000"), 0.5)), "rgb(128 128 128)");
});

test("every text on every colour can be read, on light and dark ground", () => {
  const families = ["#3a7d44", "#7b4ea3", "#c07b1e", "#5476a8", "#d5d3cc", "#b3b37e", "#dd8168"];
  for (const ground of [LIGHT, DARK]) {
    for (const family of families) {
      for (let variant = 0; variant < VARIANTS; variant++) {
        for (const soft of [0, 0.24, 0.48, 0.72]) {
          const { fill, text } = paintFor(parseColour(family), ground, variant, soft);
          assert.ok(contrast(parseColour(fill), parseColour(text)) >= 4.4, `${family} ${variant} ${soft}: ${fill} ${text}`);
        }
      }
    }
  }
});

test("names of one family differ, and one name is always the same", () => {
  const seen = new Set<string>();
  for (let variant = 0; variant < VARIANTS; variant++) seen.add(paintFor(parseColour("#4f8fa8"), LIGHT, variant, 0).fill);
  assert.ok(seen.size >= 10);
  assert.equal(hash("aten::mm"), hash("aten::mm"));
  assert.notEqual(hash("aten::mm"), hash("aten::bmm"));
});
