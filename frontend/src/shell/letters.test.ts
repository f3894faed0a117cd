import assert from "node:assert/strict";
import { test } from "node:test";
import { panelLetters } from "./letters.ts";

const panels = (...titles: string[]) => titles.map((title) => ({ name: title, title }));

test("no panels, no letters", () => {
  assert.equal(panelLetters([]).size, 0);
});

test("the first panel with an initial has it, the next takes another letter", () => {
  const found = panelLetters(panels("Operators", "Overview", "Steps"));
  assert.deepEqual([...found], [["Operators", "o"], ["Steps", "s"], ["Overview", "v"]]);
});

test("an earlier group has its letters before a later one", () => {
  const found = panelLetters(panels("Overview", "Operators"), panels("Path"));
  assert.deepEqual([...found], [["Overview", "o"], ["Operators", "p"], ["Path", "a"]]);
});

test("every panel has a key of its own as long as there are letters and digits", () => {
  const many = panels(...Array.from({ length: 70 }, (_, at) => `Same ${"x".repeat(at)}`));
  const found = panelLetters(many);
  assert.equal(found.size, 62);
  assert.equal(new Set(found.values()).size, 62);
});
