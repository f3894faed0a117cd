import assert from "node:assert/strict";
import { test } from "node:test";
import { rankListText, consecutiveRanges } from "./rank-ranges.ts";

test("numbers that follow one another are a stretch", () => {
  assert.deepEqual(consecutiveRanges([]), []);
  assert.deepEqual(consecutiveRanges([3, 0, 1, 2, 2, 8]), [[0, 3], [8, 8]]);
});

test("ranks as people write them", () => {
  assert.equal(rankListText([3]), "rank 3");
  assert.equal(rankListText([0, 1, 2, 3, 6, 7]), "ranks 0 to 3, 6, 7");
  assert.equal(rankListText([0, 2, 4, 6], 2), "ranks 0, 2 and more");
});
