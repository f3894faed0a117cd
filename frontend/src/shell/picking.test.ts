import assert from "node:assert/strict";
import { test } from "node:test";
import type { TraceInfo } from "../data/api.ts";
import { levelChoices, pickTrace, areDistinct } from "./picking.ts";

function trace(id: string): TraceInfo {
  const [run = "", worker = "", span = ""] = id.split("/");
  return { id, name: id, run, worker, span, bytes: 0, job: "", is_ledger: false, modified: null, device: null, steps: null };
}

const TRACES = ["a/w0/1", "a/w0/2", "a/w1/1", "a/w1/2", "b/w1/2", "b/w2/1"].map(trace);
const at = (id: string) => TRACES.find((known) => known.id === id) ?? trace("?");

test("one trace leaves nothing to choose", () => {
  const [only = trace("a/w/1")] = TRACES;
  assert.deepEqual(levelChoices([only], only), { run: ["a"], worker: ["w0"], span: ["1"] });
});

test("workers are those of the run, spans those of the worker", () => {
  assert.deepEqual(levelChoices(TRACES, at("b/w1/2")), {
    run: ["a", "b"],
    worker: ["w1", "w2"],
    span: ["2"],
  });
});

test("another worker keeps the span, another run keeps worker and span where it has them", () => {
  assert.equal(pickTrace(TRACES, at("a/w0/2"), "worker", "w1")?.id, "a/w1/2");
  assert.equal(pickTrace(TRACES, at("a/w1/2"), "run", "b")?.id, "b/w1/2");
  assert.equal(pickTrace(TRACES, at("a/w0/1"), "run", "b")?.id, "b/w2/1");
  assert.equal(pickTrace(TRACES, at("a/w0/1"), "span", "2")?.id, "a/w0/2");
});

test("an unknown choice is no trace", () => {
  assert.equal(pickTrace(TRACES, at("a/w0/1"), "span", "9"), undefined);
});

test("traces with equal run, worker and span are not told apart", () => {
  assert.equal(areDistinct(TRACES), true);
  assert.equal(areDistinct([...TRACES, { ...at("a/w0/1"), id: "other" }]), false);
});
