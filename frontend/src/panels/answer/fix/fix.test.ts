import assert from "node:assert/strict";
import { test } from "node:test";
import { calls } from "./calls.ts";
import { edits } from "./fix.ts";

const FILE = `import torch
from torch.utils.data import (
    DataLoader,
)

loader = DataLoader(
    data,
    batch_size=4,
    num_workers=0,  # for now
)
for x, y in loader:
    x, y = x.to(device), y.to(device)
    optimizer.zero_grad(set_to_none=False)
    loss = loss_of(model(x), y)
`.split("\n");

test("calls are found with their arguments, definitions are not", () => {
  const [outer, inner, ...others] = calls("f(a, g[1](b), k=h.m('x, y', *z))  # i(j)\ndef n(o): pass");
  assert.equal(outer?.callee, "f");
  assert.deepEqual(outer?.args.map(({ keyword, value }) => [keyword, value]), [
    [null, "a"], [null, "g[1](b)"], ["k", "h.m('x, y', *z)"],
  ]);
  assert.equal(inner?.callee, "h.m");
  assert.deepEqual(others, []);
});

test("keywords are set where the call stands, over several lines too", () => {
  assert.deepEqual(edits("DataLoader(..., num_workers=4, pin_memory=True)", FILE, 11), [
    {
      at: 9,
      removed: ["    num_workers=0,  # for now"],
      added: ["    num_workers=4,  # for now", "    pin_memory=True,"],
    },
  ]);
  assert.deepEqual(edits("AdamW(..., fused=True)", ["a = AdamW(", "    b", ")"], null), [
    { at: 2, removed: ["    b"], added: ["    b,", "    fused=True"] },
  ]);
});

test("of methods only those on the marked line are meant, and all of them", () => {
  const code = "x = x.to(device, non_blocking=True)";
  assert.deepEqual(edits(code, FILE, 14), []);
  assert.deepEqual(
    edits("x = x.to(device, non_blocking=True)", ["a = b.to(d)"], 1),
    [{ at: 1, removed: ["a = b.to(d)"], added: ["a = b.to(d, non_blocking=True)"] }],
  );
});

test("two calls on one line are changed as one", () => {
  assert.deepEqual(edits("x = x.to(device, non_blocking=True)", FILE, 12), [
    {
      at: 12,
      removed: ["    x, y = x.to(device), y.to(device)"],
      added: ["    x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)"],
    },
  ]);
});

test("calls within one another are left alone", () => {
  assert.deepEqual(edits("x = x.to(device, non_blocking=True)", ["a = b.to(c.to(d))"], 1), []);
});

test("arguments written in full take the place of those that stand there", () => {
  assert.deepEqual(edits("optimizer.zero_grad()", FILE, 13), [
    { at: 13, removed: [FILE[12]], added: ["    optimizer.zero_grad()"] },
  ]);
});

test("a setting comes behind the imports, or in place of itself", () => {
  const code = "torch.backends.cudnn.benchmark = True";
  assert.deepEqual(edits(code, FILE, 13), [{ at: 5, removed: [], added: [code] }]);
  assert.deepEqual(edits(code, ["import torch", "torch.backends.cudnn.benchmark = False  # why"], 1), [
    { at: 2, removed: ["torch.backends.cudnn.benchmark = False  # why"], added: [code] },
  ]);
  assert.deepEqual(edits(code, ["import jax"], 1), []);
});

test("what is a choice, a block, ambiguous or there already stays code to adapt", () => {
  assert.deepEqual(edits("torch.set_num_threads(1)  # or OMP_NUM_THREADS=1", FILE, 1), []);
  assert.deepEqual(edits("with torch.inference_mode():\n    model(x)", FILE, 13), []);
  assert.deepEqual(edits("DataLoader(..., num_workers=4)", ["DataLoader(a)", "DataLoader(b)"], null), []);
  assert.deepEqual(edits("DataLoader(..., num_workers=4)", ["DataLoader(a, num_workers=4)"], 1), []);
  assert.deepEqual(edits("DataLoader(..., num_workers=4)", ["DataLoader(**options)"], 1), []);
  assert.deepEqual(edits("total += loss.detach()", FILE, 13), []);
  assert.deepEqual(edits("DataLoader(..., pin_memory=True)\nnext(loader)", FILE, 11), []);
});
