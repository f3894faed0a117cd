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

/** What it is worth to find the letters of a word at some places: by the begin of words, by case, and side by side. */
function worth(word: string, text: string, places: readonly number[]): number {
  const gains = places.map((at, letter) => {
    const isBegin = /[^a]/.test(text[at - 1] ?? "_") && (text[at - 1] !== "A") || (text[at - 1] === "a" && text[at] === "A");
    return (at === 0 ? 10 : isBegin ? 7 : 1) + (text[at] === word[letter] ? 1 : 0) + (letter > 0 && places[letter - 1] === at - 1 ? 7 : 0);
  });
  return gains.reduce((sum, gain) => sum + gain, -0.05 * text.length);
}

/** Every way to find the letters in order. */
function ways(word: string, text: string, from = 0): number[][] {
  if (word === "") return [[]];
  const at = Array.from(text, (_, place) => place).filter((place) => place >= from && text[place]?.toLowerCase() === word[0]?.toLowerCase());
  return at.flatMap((place) => ways(word.slice(1), text, place + 1).map((rest) => [place, ...rest]));
}

test("of all ways to find the letters the best one is taken", () => {
  const texts = [""];
  for (let at = 0; texts[at]!.length < 5; at += 1) texts.push(...["a", "A", "_"].map((letter) => texts[at] + letter));
  for (const text of texts) {
    for (const word of ["a", "A", "aa", "aA", "a_", "_a", "aaA"]) {
      const scores = ways(word, text).map((places) => worth(word, text, places));
      const found = fuzzyMatch(word, text);
      if (found === null) assert.deepEqual(scores, [], `${word} in ${text}`);
      else assert.deepEqual([found.score, worth(word, text, found.places)].map((score) => score.toFixed(3)), Array(2).fill(Math.max(...scores).toFixed(3)), `${word} in ${text}`);
    }
  }
});
