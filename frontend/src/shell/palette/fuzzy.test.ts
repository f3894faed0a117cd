import assert from "node:assert/strict";
import test from "node:test";
import { fuzzyMatch } from "./fuzzy.ts";

/** The texts that match, the best first. */
function best(asked: string, texts: readonly string[]): string[] {
  const found = texts.flatMap((text) => {
    const match = fuzzyMatch(asked, text);
    return match === null ? [] : [{ text, ...match }];
  });
  return found.sort((a, b) => b.score - a.score).map((one) => one.text);
}

test("letters are found in order, or not at all", () => {
  assert.deepEqual(fuzzyMatch("mem", "Memory")?.places, [0, 1, 2]);
  assert.equal(fuzzyMatch("mme", "Memory"), null);
  assert.equal(fuzzyMatch("memoryy", "Memory"), null);
  assert.deepEqual(fuzzyMatch("", "Memory")?.places, []);
});

test("the begins of words are better than letters within them", () => {
  assert.deepEqual(fuzzyMatch("cp", "Critical path")?.places, [0, 9]);
  assert.deepEqual(best("cp", ["Occupancy", "Critical path", "Copies"])[0], "Critical path");
  assert.deepEqual(best("mo", ["Memory by operator", "Modules", "Memory"])[0], "Modules");
  assert.deepEqual(fuzzyMatch("bt", "aten::batch_norm_Two")?.places, [6, 17]);
});

test("letters that follow one another are better than letters apart", () => {
  assert.deepEqual(best("step", ["Show the traces, every panel", "Steps"]), ["Steps", "Show the traces, every panel"]);
  assert.deepEqual(fuzzyMatch("conv", "cudnn::convolution")?.places, [7, 8, 9, 10]);
});

test("words may be in any order", () => {
  assert.ok(fuzzyMatch("norm batch", "aten::batch_norm") !== null);
  assert.equal(fuzzyMatch("norm copy", "aten::batch_norm"), null);
});

test("of equal matches the shorter text is first", () => {
  assert.deepEqual(best("aten::mm", ["aten::mm_out", "aten::mm"])[0], "aten::mm");
});

test("a text without end takes no time without end", () => {
  assert.ok(fuzzyMatch("a".repeat(50), "ab".repeat(100_000)) !== null);
});
