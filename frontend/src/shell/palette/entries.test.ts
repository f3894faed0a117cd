import assert from "node:assert/strict";
import test from "node:test";
import { matchingEntries, titlePieces, type Entry, type EntryKind } from "./entries.ts";

function entry(kind: EntryKind, title: string): Entry {
  return { id: `${kind} ${title}`, kind, title, run: () => undefined };
}

const ENTRIES = [
  entry("panel", "Memory"),
  entry("panel", "Steps"),
  entry("action", "Copy the answer as Markdown"),
  entry("setting", "Dark colours"),
  entry("step", "Step 1"),
  entry("step", "Step 12"),
  entry("operator", "aten::memory_format"),
];

function titles(typed: string): string[] {
  return matchingEntries(typed, ENTRIES).map((one) => one.title);
}

test("at first panels, actions and settings are offered, and no names of the trace", () => {
  assert.deepEqual(titles(""), ["Memory", "Steps", "Copy the answer as Markdown", "Dark colours"]);
});

test("panels come before names that match as well", () => {
  assert.deepEqual(titles("mem"), ["Memory", "aten::memory_format"]);
  assert.equal(titles("step")[0], "Steps");
  assert.equal(titles("step 12")[0], "Step 12");
});

test("as in editors > asks for actions, and : for a step", () => {
  assert.deepEqual(titles(">"), ["Copy the answer as Markdown", "Dark colours"]);
  assert.deepEqual(titles(">mark"), ["Copy the answer as Markdown"]);
  assert.deepEqual(titles(":12"), ["Step 12"]);
});

test("a title is cut where it matches, and hostile names are inert", () => {
  assert.deepEqual(titlePieces("Memory", [0, 1, 4]), [
    { text: "Me", isMatch: true },
    { text: "mo", isMatch: false },
    { text: "r", isMatch: true },
    { text: "y", isMatch: false },
  ]);
  assert.deepEqual(titlePieces("a\u202eb", []), [{ text: "a\\u202eb", isMatch: false }]);
});
