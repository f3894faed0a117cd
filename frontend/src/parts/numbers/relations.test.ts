import assert from "node:assert/strict";
import test from "node:test";
import { relationText } from "./relations.ts";

test("how a slice belongs to a finding or a row", () => {
  assert.equal(relationText({ kind: "changed", relation: "own", count: 1 }), "Finding:");
  assert.equal(relationText({ kind: "row", relation: "own", count: 1 }), "Row of the account:");
  assert.equal(relationText({ kind: "measured", relation: "contains", count: 1 }), "Contains a slice of the finding:");
  assert.equal(relationText({ kind: "row", relation: "launches", count: 1200 }), "Launches 1,200 slices of the row of the account:");
});
