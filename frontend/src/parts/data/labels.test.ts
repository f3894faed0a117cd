import assert from "node:assert/strict";
import test from "node:test";
import type { Column } from "../../data/api.ts";
import { labelOfValue, labelsOf, sentLabel } from "./labels.ts";

const PART: Column = {
  name: "part", unit: "name", doc: "", nullable: false, labels: { first_batch: { text: "the first batch", doc: "It takes longest." } },
};

test("a value has the label that was sent, else its own words", () => {
  const labels = labelsOf({ columns: [PART] }, "part");
  assert.deepEqual(labelOfValue(labels, "first_batch"), { text: "the first batch", doc: "It takes longest." });
  assert.equal(labelOfValue(labels, "other_part").text, "other part");
  assert.equal(sentLabel(labels, "constructor"), undefined);
});

test("a table that is not there has no labels", () => {
  assert.deepEqual([labelsOf(undefined, "part"), labelsOf({ columns: [PART] }, "time")], [{}, {}]);
});
