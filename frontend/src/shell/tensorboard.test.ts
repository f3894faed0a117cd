import assert from "node:assert/strict";
import { test } from "node:test";
import { fragmentIn, fragmentWith } from "./tensorboard.ts";

test("what is written into TensorBoard's URL is read again, beside its own parameters", () => {
  const own = '#/operators?trace=a&find=a%26b&where=[{"op":"="}]';
  const outer = fragmentWith("#selftime&darkMode=true", own);
  assert.equal(outer?.startsWith("#selftime&darkMode=true&p.selftime.at="), true);
  assert.equal(fragmentIn(outer ?? ""), own);
  assert.equal(fragmentWith(outer ?? "", own), outer);
  assert.equal(fragmentIn(fragmentWith(outer ?? "", "#/idle") ?? ""), "#/idle");
});

test("while another tab is shown, nothing is written", () => {
  assert.equal(fragmentWith("#scalars", "#/idle"), null);
  assert.equal(fragmentWith("", "#/idle"), null);
});

test("without our parameter, or with a damaged one, there is no fragment", () => {
  assert.equal(fragmentIn(""), null);
  assert.equal(fragmentIn("#selftime"), null);
  assert.equal(fragmentIn("#selftime&p.selftime.at=%"), null);
});
