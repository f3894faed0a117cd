import assert from "node:assert/strict";
import { test } from "node:test";
import { blocks, inlines } from "./markdown.ts";

const said = (text: string) => [{ kind: "text", text }];

test("headings, paragraphs and drawings of a page are told apart", () => {
  const page = "# name\n\nOne line\nand more.\n\n## Fires on\nA read.\n\n    cpu 1 | aa\n\n    s = b\n\nEnd.";
  assert.deepEqual(blocks(page), [
    { kind: "heading", level: 1, text: said("name") },
    { kind: "paragraph", text: said("One line and more.") },
    { kind: "heading", level: 2, text: said("Fires on") },
    { kind: "paragraph", text: said("A read.") },
    { kind: "code", text: "cpu 1 | aa\n\ns = b", language: "" },
    { kind: "paragraph", text: said("End.") },
  ]);
});

test("lists go on over lines, fences end where they end", () => {
  assert.deepEqual(blocks("- one\n  more\n- two\n\n1. a\n\n```python\nx = '# no'\n```\nend"), [
    { kind: "list", ordered: false, items: [said("one more"), said("two")] },
    { kind: "list", ordered: true, items: [said("a")] },
    { kind: "code", text: "x = '# no'", language: "python" },
    { kind: "paragraph", text: said("end") },
  ]);
});

test("tables have a head and rows", () => {
  assert.deepEqual(blocks("| a | b |\n|---|--:|\n| `x` | 1 \\| 2 |"), [
    { kind: "table", head: [said("a"), said("b")], rows: [[[{ kind: "code", text: "x" }], said("1 | 2")]] },
  ]);
});

test("code, stress and links within a line; all else is text", () => {
  assert.deepEqual(inlines("a `b*c*` **d** *e* [f](g.md) 2 * 3 * 4 <script> \\* x_y_z"), [
    { kind: "text", text: "a " },
    { kind: "code", text: "b*c*" },
    { kind: "text", text: " " },
    { kind: "strong", text: "d" },
    { kind: "text", text: " " },
    { kind: "emphasis", text: "e" },
    { kind: "text", text: " " },
    { kind: "link", text: "f", to: "g.md" },
    { kind: "text", text: " 2 * 3 * 4 <script> * x_y_z" },
  ]);
});

test("what is broken off stays text, and nothing is lost", () => {
  for (const text of ["`open", "**open", "[a](b c)", "| no table", "```\nopen"]) {
    assert.ok(blocks(text).length > 0, text);
  }
  assert.deepEqual(inlines("`open"), said("`open"));
});
