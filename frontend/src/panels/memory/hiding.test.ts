import assert from "node:assert/strict";
import test from "node:test";
import type { Band } from "./bands.ts";
import type { Curve } from "./curves.ts";
import { alone, hiddenOf, shownPart, toggled, wordOfHidden } from "./hiding.ts";

function band(label: string, times: number[], bytes: number[]): Band {
  return { label, colour: "copy", file: null, line: null, times, bytes };
}

const bands = [band("earlier", [0], [100]), band("gradient", [10, 30], [8, 0]), band("input", [20], [4])];
const curve: Curve = {
  key: "CUDA:0", type: "CUDA", device: 0, title: "CUDA 0", name: null, capacity: 1000, atLeast: false, isPart: false,
  times: [0, 10, 20, 30], allocated: [100, 108, 112, 104], reserved: [200, 200, 200, 200], peak: { time: 20, allocated: 112 },
};

test("the address names the hidden bands, and a word that means nothing hides none", () => {
  assert.deepEqual([...hiddenOf(wordOfHidden(new Set(["b", "a, c"])))], ["a, c", "b"]);
  assert.equal(wordOfHidden(new Set()), undefined);
  for (const word of [undefined, "x", "{}", "[1]"]) assert.equal(hiddenOf(word).size, 0, String(word));
});

test("a band is hidden and shown, stands alone and no longer does", () => {
  const hidden = toggled(new Set(), "input");
  assert.deepEqual([...hidden], ["input"]);
  assert.equal(toggled(hidden, "input").size, 0);
  const others = alone(hidden, "input", bands);
  assert.deepEqual([...others], ["earlier", "gradient"]);
  assert.equal(alone(others, "input", bands).size, 0);
  assert.deepEqual([...alone(new Set(["earlier"]), "input", bands)], ["earlier", "gradient"]);
});

test("the curve is what the shown bands hold together, with their own peak", () => {
  const part = shownPart(curve, bands, new Set(["earlier"]));
  assert.deepEqual(part.bands?.map((one) => one.label), ["gradient", "input"]);
  assert.deepEqual([part.curve.times, part.curve.allocated], [[10, 20, 30], [8, 12, 4]]);
  assert.deepEqual(part.curve.peak, { time: 20, allocated: 12 });
  assert.deepEqual([part.curve.isPart, part.curve.reserved, part.curve.capacity], [true, null, null]);
});

test("without hidden bands the curve is the recorded one, and without bands nothing is hidden", () => {
  assert.equal(shownPart(curve, bands, new Set(["not one of them"])).curve, curve);
  assert.equal(shownPart(curve, null, new Set(["earlier"])).curve, curve);
  assert.deepEqual(shownPart(curve, bands, new Set(bands.map((one) => one.label))).curve.allocated, []);
});
