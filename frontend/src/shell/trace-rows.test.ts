import assert from "node:assert/strict";
import { test } from "node:test";
import type { TraceInfo } from "../data/api.ts";
import { dateText, parseSort, searchTraces, sortTraces } from "./trace-rows.ts";

const BARE: TraceInfo = { id: "", name: "", run: "", worker: "", span: "", bytes: 0, job: "", is_ledger: false, modified: null, device: null, steps: null };
const trace = (name: string, more: Partial<TraceInfo> = {}): TraceInfo => ({ ...BARE, id: name, name, ...more });
const names = (traces: readonly TraceInfo[]) => traces.map(({ name }) => name);

test("each word is searched in folder, name and device", () => {
  const traces = [trace("vit.json", { run: "July", device: "NVIDIA H100" }), trace("bert.json", { run: "July" })];
  assert.deepEqual(names(searchTraces(traces, "july h100")), ["vit.json"]);
  assert.deepEqual(names(searchTraces(traces, " ")), ["vit.json", "bert.json"]);
});

test("numbers sort by value, texts with numbers naturally, the unknown last either way", () => {
  const traces = [trace("r10", { steps: null }), trace("r2", { steps: 3 }), trace("r1", { steps: 12 })];
  assert.deepEqual(names(sortTraces(traces, "name")), ["r1", "r2", "r10"]);
  assert.deepEqual(names(sortTraces(traces, "steps")), ["r2", "r1", "r10"]);
  assert.deepEqual(names(sortTraces(traces, "-steps")), ["r1", "r2", "r10"]);
  assert.deepEqual(names(sortTraces(traces, "-nothing")), ["r10", "r2", "r1"]);
});

test("an unknown order is none", () => {
  assert.equal(parseSort("id"), null);
  assert.deepEqual(parseSort("-bytes"), { column: "bytes", isDescending: true });
});

test("dates sort as they read", () => {
  assert.match(dateText(1_700_000_000), /^2023-11-1\d \d\d:\d\d$/);
});
