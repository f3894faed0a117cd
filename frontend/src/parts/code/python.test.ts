import assert from "node:assert/strict";
import { test } from "node:test";
import { tokens } from "./python.ts";

function kinds(line: string): [string, string][] {
  const [found = []] = tokens([line]);
  return found.filter((token) => token.text.trim() !== "").map(({ kind, text }) => [kind, text]);
}

test("no line loses a character", () => {
  const lines = ["", "  x = 'a\\'b' + f\"{y!r}\"  # done", "𝛼 = 1_000.5e-3j", 'd = """open', "still", 'end""" + 1'];
  assert.deepEqual(tokens(lines).map((cut) => cut.map((token) => token.text).join("")), lines);
});

test("keywords, names, numbers and comments are told apart", () => {
  assert.deepEqual(kinds("for i in range(0x1f):  # all"), [
    ["keyword", "for"], ["name", "i"], ["keyword", "in"], ["name", "range"], ["other", "("],
    ["number", "0x1f"], ["other", ")"], ["other", ":"], ["comment", "# all"],
  ]);
});

test("a sign within a string is no comment, an escaped quote no end", () => {
  assert.deepEqual(kinds(String.raw`x = rb'a#\'b' #c`).slice(2), [["string", String.raw`rb'a#\'b'`], ["comment", "#c"]]);
});

test("a string in three quotes goes on over lines", () => {
  const [first, second, third] = tokens(['a = """one', "if two # three", 'x""" if b']);
  assert.equal(first?.at(-1)?.kind, "string");
  assert.deepEqual(second, [{ kind: "string", text: "if two # three" }]);
  assert.deepEqual(third?.filter((token) => token.text.trim()).map((token) => token.kind), ["string", "keyword", "name"]);
});

test("a short string that is broken off ends with its line", () => {
  assert.equal(tokens(["a = 'broken", "if b"])[1]?.[0]?.kind, "keyword");
});

test("an @ decorates only at the start of a line", () => {
  assert.deepEqual(kinds("@torch.compile")[0], ["decorator", "@torch.compile"]);
  assert.deepEqual(kinds("c = a @b").map(([kind]) => kind), ["name", "other", "name", "other", "name"]);
});

test("match is a keyword only where a statement begins with it", () => {
  assert.equal(kinds("match value:")[0]?.[0], "keyword");
  assert.equal(kinds("match = re.match(x)")[0]?.[0], "name");
});
