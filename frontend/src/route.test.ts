import assert from "node:assert/strict";
import { test } from "node:test";
import { parseRoute, formatRoute } from "./route.ts";

test("nothing in the address is no panel", () => {
  assert.deepEqual(parseRoute(""), { panel: "", params: {} });
  assert.deepEqual(parseRoute("#/"), { panel: "", params: {} });
});

test("what is written is read again", () => {
  const routes = [
    { panel: "operators", params: {} },
    { panel: "operators", params: { sort: "-count", find: "a&b=c?d#e %", where: '[{"column":"x"}]' } },
    { panel: "lines", params: { file: "/data/ü/<script>.py", line: "12" } },
  ];
  for (const route of routes) assert.deepEqual(parseRoute(formatRoute(route)), route);
});

test("a lone percent sign is read as it is", () => {
  assert.equal(parseRoute("#/50%").panel, "50%");
});
