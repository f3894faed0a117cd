import assert from "node:assert/strict";
import { test } from "node:test";
import type { Data, Page, TraceInfo } from "../../data/api.ts";
import { cachedData } from "./remember.ts";

/** Data that count how often they are asked. */
function counted(rows = 1): Data & { asked: string[]; known: TraceInfo[] } {
  const asked: string[] = [];
  const known: TraceInfo[] = [];
  const page = (view: string): Page => ({
    view,
    options: {},
    all: rows,
    total: rows,
    from: 0,
    rows,
    columns: { name: { values: [] } },
    totals: {},
    lacks: [],
  });
  return {
    asked,
    known,
    inline: false,
    pair: null,
    traces: async () => [...known],
    views: async () => [],
    contents: async () => assert.fail("nobody asks"),
    progress: async () => assert.fail("nobody asks"),
    page: async (_trace, view) => {
      asked.push(view);
      if (view === "broken") throw new Error("broken");
      return page(view);
    },
    advice: async () => assert.fail("nobody asks"),
    health: async () => assert.fail("nobody asks"),
    compare: async () => assert.fail("nobody asks"),
    job: async () => assert.fail("nobody asks"),
    whatIf: async () => assert.fail("nobody asks"),
    sqlSchema: () => Promise.reject(new Error("none")),
    sql: () => Promise.reject(new Error("none")),
    queryTrack: () => Promise.reject(new Error("none")),
    rule: async (name) => name,
    source: async () => null,
    csv: () => null,
  };
}

test("a question is asked once, another one besides", async () => {
  const data = counted();
  const remembered = cachedData(data);
  await remembered.page("t", "operators", {}, {});
  await remembered.page("t", "operators", {}, {});
  assert.deepEqual(data.asked, ["operators"]);
  await remembered.page("t", "operators", {}, { sort: "name" });
  assert.deepEqual(data.asked, ["operators", "operators"]);
});

test("a failure is not remembered", async () => {
  const data = counted();
  const remembered = cachedData(data);
  await assert.rejects(remembered.page("t", "broken", {}, {}));
  await assert.rejects(remembered.page("t", "broken", {}, {}));
  assert.equal(data.asked.length, 2);
});

test("a large answer is not kept", async () => {
  const data = counted(1_000_000);
  const remembered = cachedData(data);
  await remembered.page("t", "operators", {}, {});
  await remembered.page("t", "operators", {}, {});
  assert.equal(data.asked.length, 2);
});

test("of many answers the oldest goes", async () => {
  const data = counted();
  const remembered = cachedData(data);
  for (let from = 0; from < 70; from += 1) await remembered.page("t", "operators", {}, { from });
  await remembered.page("t", "operators", {}, { from: 69 });
  assert.equal(data.asked.length, 70);
  await remembered.page("t", "operators", {}, { from: 0 });
  assert.equal(data.asked.length, 71);
});

test("other traces, other answers", async () => {
  const data = counted();
  const remembered = cachedData(data);
  await remembered.traces();
  await remembered.page("t", "operators", {}, {});
  data.known.push({ id: "t", name: "t", run: "", worker: "", span: "", bytes: 1, job: "", is_ledger: false, modified: null, device: null, steps: null });
  await remembered.traces();
  await remembered.page("t", "operators", {}, {});
  assert.equal(data.asked.length, 2);
});
