import assert from "node:assert/strict";
import { test } from "node:test";
import type { Page } from "../../../data/api.ts";
import { valueAt } from "../../../data/table.ts";
import { PAGE, Rows } from "./rows.ts";

/** A server of numbered rows, of which an answer holds at most `most`. */
function server(total: number, most = 1000) {
  const asked: [number, number][] = [];
  const waiting: (() => void)[] = [];
  const ask = (from: number, rows: number) =>
    new Promise<Page>((resolve) => {
      asked.push([from, rows]);
      const count = Math.max(0, Math.min(rows, most, total - from));
      const values = Array.from({ length: count }, (_, row) => from + row);
      const page: Page = {
        view: "numbers", options: {}, all: total, total, from, rows: count, totals: {}, lacks: [],
        columns: { number: { values } },
      };
      waiting.push(() => resolve(page));
    });
  const answer = async () => {
    while (waiting.length > 0) {
      waiting.shift()?.();
      await new Promise((done) => setImmediate(done));
    }
  };
  return { ask, asked, answer, waiting };
}

function numberAt(rows: Rows, row: number): unknown {
  const found = rows.find(row);
  const values = found?.page.columns["number"];
  return found && values ? valueAt(values, found.at) : undefined;
}

test("one page is asked for first, whatever is in sight", async () => {
  const { ask, asked, answer } = server(5000);
  let changes = 0;
  const rows = new Rows(ask, () => (changes += 1));
  rows.want(0, 900);
  assert.deepEqual(asked, [[0, PAGE]]);
  await answer();
  assert.equal(rows.total, 5000);
  assert.deepEqual(asked.map(([from]) => from), [0, 200, 400, 600, 800]);
  assert.equal(changes, 5);
  assert.equal(numberAt(rows, 899), 899);
});

test("what is here is not asked for again", async () => {
  const { ask, asked, answer } = server(5000);
  const rows = new Rows(ask, () => undefined);
  rows.want(0, 50);
  await answer();
  rows.want(10, 190);
  assert.equal(asked.length, 1);
  rows.want(4990, 6000);
  await answer();
  assert.deepEqual(asked.at(-1), [4800, 200]);
  assert.equal(numberAt(rows, 4999), 4999);
  assert.equal(rows.find(5000), null);
  assert.equal(rows.find(300), null);
});

test("who scrolls fast gets where he stops, not all that he passed", async () => {
  const { ask, asked, answer } = server(100_000);
  const rows = new Rows(ask, () => undefined);
  rows.want(0, 50);
  await answer();
  for (let from = 1000; from <= 90_000; from += 1000) rows.want(from, from + 50);
  assert.equal(asked.length, 3);
  await answer();
  assert.equal(numberAt(rows, 90_000), 90_000);
  assert.ok(asked.length <= 5, String(asked.length));
});

test("a short answer is followed by the rest", async () => {
  const { ask, asked, answer } = server(500, 70);
  const rows = new Rows(ask, () => undefined);
  rows.want(0, 500);
  await answer();
  for (let row = 0; row < 500; row += 1) assert.equal(numberAt(rows, row), row);
  assert.ok(asked.some(([from, count]) => from === 70 && count === 130), JSON.stringify(asked));
  assert.equal(new Set(asked.map(([from]) => from)).size, asked.length);
});

test("an empty table is an answer", async () => {
  const { ask, asked, answer } = server(0);
  const rows = new Rows(ask, () => undefined);
  rows.want(0, 50);
  await answer();
  rows.want(0, 50);
  assert.equal(asked.length, 1);
  assert.equal(rows.head?.total, 0);
  assert.equal(rows.error, null);
});

test("a failure is told once and ends the asking", async () => {
  let times = 0;
  const rows = new Rows(() => Promise.reject(new Error("gone")), () => (times += 1));
  rows.want(0, 50);
  await new Promise((done) => setImmediate(done));
  rows.want(0, 60);
  assert.equal(rows.error?.message, "gone");
  assert.equal(times, 1);
});
