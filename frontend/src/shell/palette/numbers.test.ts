import assert from "node:assert/strict";
import test from "node:test";
import type { AdviceNumber } from "../../data/numbers.ts";
import { entriesOf } from "./numbers.ts";

const NUMBER: AdviceNumber = {
  of: "finding:slow_input-1", kind: "changed", title: "The loop loads data", what: "", detail: "saves 3.1 ms a step",
  answer: { open: "slow_input-1" }, are_examples: false, slice_count: 6, stretch_count: 0, stretch_time: 0, text: "6 slices",
};

test("a finding is offered once, with the way to its slices; a row with that alone", () => {
  const numbers: AdviceNumber[] = [
    NUMBER,
    { ...NUMBER, of: "finding:slow_input-1:1", kind: "measured", title: "time in the loader" },
    { ...NUMBER, of: "account:idle-1", kind: "row", title: "idle", text: "4 stretches" },
  ];
  const told = entriesOf(numbers).map(({ title, detail }) => [title, detail]);
  assert.deepEqual(told, [
    ["The loop loads data", "saves 3.1 ms a step"],
    ["Slices of: The loop loads data", "6 slices"],
    ["Slices of: idle", "4 stretches"],
  ]);
  assert.deepEqual(entriesOf([]), []);
});
