import assert from "node:assert/strict";
import { test } from "node:test";
import type { TraceInfo } from "../../data/api.ts";
import { areUnrelated } from "./unrelated-traces.ts";

const trace = (name: string, more: Partial<TraceInfo>): TraceInfo => ({
  id: name, name, run: "", worker: "", span: "", bytes: 0, job: "", is_ledger: false, modified: null, device: null, steps: null, ...more,
});

test("traces of one job in each folder belong together", () => {
  const ranks = ["a", "b"].map((name) => trace(name, { run: "one", job: "1" }));
  assert.equal(areUnrelated([...ranks, trace("c", { run: "two", job: "2" })]), false);
});

test("several jobs in a folder do not, but two named files are a pair", () => {
  const jobs = ["1", "2", "3"].map((job) => trace(job, { run: "one", job }));
  assert.equal(areUnrelated(jobs.slice(0, 2)), true);
  const named = jobs.map((one) => ({ ...one, run: "" }));
  assert.equal(areUnrelated(named.slice(0, 2)), false);
  assert.equal(areUnrelated(named), true);
});
