import assert from "node:assert/strict";
import test from "node:test";
import { Turns } from "./turns.ts";

test("the first has its turn at once, each other one a frame later, in order", async () => {
  let draw = () => {};
  const turns = new Turns(() => new Promise((resolve) => (draw = resolve)));
  const had: string[] = [];
  const settled = () => new Promise((done) => setTimeout(done));
  for (const name of ["a", "b", "c"]) void turns.next().then(() => had.push(name));
  await settled();
  assert.deepEqual(had, ["a"]);
  draw();
  await settled();
  assert.deepEqual(had, ["a", "b"]);
  draw();
  await settled();
  assert.deepEqual(had, ["a", "b", "c"]);
  draw();
  await settled();
  void turns.next().then(() => had.push("d"));
  await settled();
  assert.deepEqual(had, ["a", "b", "c", "d"]);
});
