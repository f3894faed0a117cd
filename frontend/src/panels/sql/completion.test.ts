import assert from "node:assert/strict";
import test from "node:test";
import type { SqlRelation } from "../../data/sql.ts";
import { completions, namedRelations } from "./completion.ts";
import { sqlTokens } from "./tokens.ts";

function relation(name: string, columns: string[], kind: "table" | "view" = "table"): SqlRelation {
  const declared = columns.map((column) => ({
    name: column, type: "integer", unit: "id" as const, doc: "", nullable: false, labels: {},
  }));
  return { name, kind, doc: "", rows: 1, columns: declared };
}

const RELATIONS = [
  relation("slices", ["id", "name", "start", "self", "self_start"]),
  relation("steps", ["step", "time"], "view"),
  relation("tables.lines", ["id", "file", "line"]),
];

function texts(query: string, isAsked = false): string[] {
  const caret = query.includes("|") ? query.indexOf("|") : query.length;
  return completions(query.replace("|", ""), caret, RELATIONS, isAsked).found.map((one) => one.text);
}

test("a word becomes a table, a view or a word of SQL", () => {
  assert.deepEqual(texts("select * from s").slice(0, 2), ["slices", "steps"]);
  assert.deepEqual(texts("sel"), ["select"]);
  assert.deepEqual(texts("select * from slices wher"), ["where"]);
});

test("columns of what the query names come first, also before it is named", () => {
  assert.deepEqual(texts("select s| from slices").slice(0, 3), ["start", "self", "self_start"]);
  assert.deepEqual(texts("select sta| from slices"), ["start", "starts_with", "self_start"]);
  assert.ok(!texts("select fil| from slices").includes("file"));
});

test("after a dot stand the columns of an alias", () => {
  assert.deepEqual(texts("select l.| from slices s join tables.lines as l"), ["id", "file", "line"]);
  assert.deepEqual(texts("select s.na| from slices s"), ["name"]);
});

test("nothing is completed that is whole, in a text, in a comment, or empty", () => {
  assert.deepEqual(texts("select"), []);
  assert.deepEqual(texts("select 'sli"), []);
  assert.deepEqual(texts("select 1 -- sli"), []);
  assert.deepEqual(texts("select "), []);
  assert.ok(texts("select ", true).includes("slices"));
});

test("relations are known by their names and aliases", () => {
  const named = namedRelations("select 1 from Slices a, tables.lines l -- steps", RELATIONS);
  assert.deepEqual([...named.keys()], ["slices", "a", "tables.lines", "l"]);
});

test("the tokens are the whole text", () => {
  const query = "select \"a b\", 'it''s', 1.5e3 -- why\nfrom slices /* open";
  const tokens = sqlTokens(query);
  assert.equal(tokens.map((token) => token.text).join(""), query);
  const kinds = tokens.filter((token) => token.kind !== "other").map((token) => token.kind);
  assert.deepEqual(kinds, ["keyword", "name", "string", "number", "comment", "keyword", "name", "comment"]);
});
