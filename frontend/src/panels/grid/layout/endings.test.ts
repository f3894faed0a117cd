import assert from "node:assert/strict";
import { test } from "node:test";
import { endings } from "./endings.ts";

const kernel = (functor: string) => `void at::native::vectorized_elementwise_kernel<4, at::native::${functor}, std::array<char*, 3>>(int)`;

test("names that begin and end alike show where they differ", () => {
  const names = [kernel("AddFunctor<float>"), kernel("MulFunctor<float>"), "aten::mm"];
  assert.deepEqual([...endings(names, 14).values()], ["::AddFunctor<float>, s…", "::MulFunctor<float>, s…"]);
});

test("those that are alike there too show where they differ from each other", () => {
  const names = ["AddFunctorOfManyTerms<float>", "AddFunctorOfManyTerms<double>", "MulFunctor<float>"].map(kernel);
  assert.deepEqual([...endings(names, 14).values()], [
    "s<float>, std::array<c…", "s<double>, std::array<…", "::MulFunctor<float>, s…",
  ]);
});

test("a name that fits needs no other end", () => {
  assert.equal(endings([kernel("A"), kernel("B")], 14, 200).size, 0);
});

test("a name that is like no other keeps its end", () => {
  assert.equal(endings([kernel("AddFunctor<float>"), kernel("AddFunctor<float>")], 14).size, 0);
  assert.equal(endings([kernel("Add"), kernel("Add").replace("(int)", "(long, long)")], 14).size, 0);
});

test("one name that is the begin of another shows its end", () => {
  const long = "a".repeat(60);
  assert.deepEqual([...endings([long, `${long}aaaa`], 14)], [
    [long, "aa"],
    [`${long}aaaa`, "aaaaaa"],
  ]);
});
