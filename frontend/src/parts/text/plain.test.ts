import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { pieces, plain } from "./plain.ts";

test("what would act in a terminal or on a page is shown as everywhere else", () => {
  const url = new URL("../../../../tests/golden/texts.json", import.meta.url);
  const golden = JSON.parse(readFileSync(url, "utf8")) as { plain: [string, string][] };
  assert.ok(golden.plain.length > 3);
  for (const [text, shown] of golden.plain) assert.equal(plain(text), shown);
});

test("names stand between backticks, a backtick alone is a backtick", () => {
  assert.deepEqual(pieces("the `a` of `b"), [
    { text: "the ", isName: false },
    { text: "a", isName: true },
    { text: " of ", isName: false },
    { text: "`b", isName: false },
  ]);
});
