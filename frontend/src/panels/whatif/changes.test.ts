import assert from "node:assert/strict";
import { test } from "node:test";
import { changeText, parseChanges, withChange, withoutChange } from "./changes.ts";
import type { AskedChange } from "../../data/api.ts";

const HALF: AskedChange = { change: "scale", pattern: "aten::mm", kept_share: 0.5 };
const SYNCS: AskedChange = { change: "remove", pattern: "syncs", kept_share: 0 };

test("an address holds changes, and what is none is left out", () => {
  assert.deepEqual(parseChanges(undefined), []);
  assert.deepEqual(parseChanges("[["), []);
  assert.deepEqual(parseChanges('{"change": "scale"}'), []);
  const odd = [HALF, null, { ...HALF, kept_share: 2 }, { ...HALF, change: "x" }, { ...HALF, pattern: "" }, SYNCS];
  assert.deepEqual(parseChanges(JSON.stringify(odd)), [HALF, SYNCS]);
});

test("a change to the same pattern replaces the one before", () => {
  const less = { ...HALF, kept_share: 0.25 };
  assert.deepEqual(withChange([HALF, SYNCS], less), [SYNCS, less]);
  assert.deepEqual(withoutChange([HALF, SYNCS], less), [SYNCS]);
});

test("a change is told in words", () => {
  assert.equal(changeText(HALF), "Scale aten::mm to 50.0 %");
  assert.equal(changeText(SYNCS), "Remove syncs");
});
