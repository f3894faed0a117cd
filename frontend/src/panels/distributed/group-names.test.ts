import assert from "node:assert/strict";
import { test } from "node:test";
import { describedAs } from "./group-names.ts";

test("a group that the program did not describe has no description", () => {
  assert.deepEqual(["mesh_tp", "undefined", "", null].map(describedAs), ["mesh_tp", null, null, null]);
});
