import assert from "node:assert/strict";
import { test } from "node:test";
import type { Panel } from "../panels/panel.ts";
import { missingIn } from "./missing.ts";

const PANEL: Panel = { name: "memory", title: "Memory", group: "memory", component: () => null, view: "memory_curve" };
const CONTENTS = { landing: "answer", lacks: { memory_curve: ["memory events: record with `x`"] } };

test("a panel says what its view lacks", () => {
  assert.equal(missingIn(PANEL, CONTENTS, []), "Not in this recording: memory events: record with `x`.");
  assert.equal(missingIn({ ...PANEL, view: "kernels" }, CONTENTS, []), "");
});

test("nothing is said before the trace is open", () => {
  assert.equal(missingIn(PANEL, null, []), "");
});

test("a panel may know of the traces what it lacks", () => {
  const alone = { ...PANEL, missing: () => "There is only one trace." };
  assert.equal(missingIn(alone, CONTENTS, []), "There is only one trace.");
});
