import assert from "node:assert/strict";
import { test } from "node:test";
import type { Cell, Options, Page } from "../../../data/api.ts";
import { readArea, readSpan, areaText, rowsOf } from "../input/url-parameters.ts";
import { Names } from "../drawing/names.ts";
import { COUNTERS, Store, batches, wantedParts, loadAllRows } from "./store.ts";
import type { Wanted } from "./store.ts";
import { lastStartedBy, levelFor, optionsOf, partsOf, resolution, samplesOf, tilesInSpan, width } from "./tiles.ts";

type Row = Record<string, Cell>;
const COLUMNS = ["kind", "track", "row", "start", "duration", "self", "name", "count", "category", "busy", "id", "value", "low", "high"];

function page(rows: readonly Row[], options: Options = {}, from = 0, total = rows.length): Page {
  const columns = Object.fromEntries(COLUMNS.map((name) => [name, { values: rows.map((row) => row[name] ?? null) }]));
  return { view: "timeline", options, all: total, total, from, rows: rows.length, columns, totals: {}, lacks: [] };
}

function slice(track: number, row: number, start: number, duration: number, id: number | null = 1): Row {
  const kind = id === null ? "merged" : "slice";
  return { kind, track, row, start, duration, busy: duration / 2, count: id === null ? 3 : 1, name: "a", category: "cpu_op", id };
}

test("the level is the finest power of two that a pixel holds", () => {
  assert.equal(levelFor(1), 0);
  assert.equal(levelFor(0.01), 0);
  assert.equal(levelFor(1023), 9);
  assert.equal(levelFor(1024), 10);
});

test("tiles are aligned to their own width, below zero too", () => {
  assert.deepEqual(tilesInSpan(0, 1024, 0), [0]);
  assert.deepEqual(tilesInSpan(-1, 1025, 0), [-1, 0, 1]);
  assert.deepEqual(tilesInSpan(5, 5, 3), [0]);
  assert.deepEqual(optionsOf({ level: 3, number: 2 }, ["1", "counters"], 8), {
    start: 16384, end: 24576, pixels: 1024, tracks: "1,counters", depth: 8,
  });
});

test("the tile that ends at 0 asks for a pixel more, as an end of 0 means another thing", () => {
  const { start, end, pixels } = optionsOf({ level: 3, number: -1 }, ["1"], 0);
  assert.deepEqual([start, end, pixels], [-8192, 8, 1025]);
  assert.equal((Number(end) - Number(start)) / Number(pixels), 8);
});

test("a page is parted by track and row; what lies outside of the tile is left out", () => {
  const rows = [slice(1, 0, -500, 600), slice(1, 0, 200, 10, null), slice(1, 2, 5, 5), slice(1, 0, 1024, 9), slice(2, 0, -50, 10)];
  const parts = partsOf(page(rows), { level: 0, number: 0 }, new Names());
  assert.deepEqual([...parts.keys()], [1]);
  const [first, second, third] = parts.get(1)?.lanes ?? [];
  assert.deepEqual([...(first?.start ?? [])], [-500, 200]);
  assert.deepEqual([...(first?.id ?? [])], [1, -1]);
  assert.deepEqual([...(first?.filled ?? [])], [0.5, 0.5]);
  assert.equal(second?.start.length, 0);
  assert.deepEqual([...(third?.end ?? [])], [10]);
});

test("marks and samples are told apart from slices", () => {
  const rows = [
    { kind: "instant", track: 1, start: 7, name: "m", count: 2 },
    { kind: "counter", name: "busy", start: 0, duration: 50, value: 40, low: 0, high: 100 },
    { kind: "counter", name: "busy", start: 5000, duration: 50, value: 40, low: 0, high: 100 },
  ];
  assert.deepEqual([...(partsOf(page(rows), { level: 0, number: 0 }, new Names()).get(1)?.marks?.time ?? [])], [7]);
  assert.deepEqual([...(samplesOf(page(rows), { level: 0, number: 0 }).get("busy")?.mean ?? [])], [40]);
  assert.equal(samplesOf(page(rows), null).get("busy")?.start.length, 2);
});

test("the interval at an instant is found by bisection", () => {
  const start = Float64Array.from([0, 10, 10, 30]);
  assert.deepEqual([-1, 0, 9, 10, 29, 99].map((time) => lastStartedBy(start, time)), [-1, 0, 0, 2, 2, 3]);
  assert.equal(lastStartedBy(new Float64Array(), 5), -1);
});

test("an answer tells how fine it is, if it does", () => {
  assert.equal(resolution(page([], { start: 0, end: 4096, pixels: 1024 })), 4);
  assert.equal(resolution(page([], { what: "tracks" })), null);
});

const PLACE = { level: 0, number: 0 };
const wanted = (track: number, depth = 0, number = 0): Wanted => ({ level: 0, number, track, depth });

function asking(answer: (options: Options) => Page) {
  const asked: Options[] = [];
  let changes = 0;
  const store = new Store(
    async (options) => {
      asked.push(options);
      return answer(options);
    },
    new Names(),
  );
  store.share(1, () => (changes += 1));
  const settled = async () => {
    for (let turn = 0; turn < 20; turn++) await new Promise((done) => setTimeout(done, 0));
  };
  return { store, asked, settled, changes: () => changes };
}

test("tracks of a tile are asked for together, counters alone, and nothing twice", async () => {
  const { store, asked, settled } = asking(() => page([slice(1, 0, 5, 5)]));
  store.want([wanted(1), wanted(2), wanted(3, 1), wanted(COUNTERS)]);
  store.want([wanted(1), wanted(2)]);
  await settled();
  assert.deepEqual(asked.map((options) => [options["tracks"], options["depth"]]), [["1,2", 0], ["3", 1], ["counters", 0]]);
  assert.ok(store.has(wanted(1)) && store.has(wanted(2)) && store.has(wanted(COUNTERS)));
  assert.ok(store.has(wanted(3, 1)) && !store.has(wanted(3, 8)));
  store.want([wanted(1), wanted(2)]);
  await settled();
  assert.equal(asked.length, 3);
});

test("what is not here is shown by finer tiles, else by a coarser one", async () => {
  const { store, settled } = asking((options) => page([slice(1, 0, Number(options["start"]), 5)]));
  store.want([{ level: 3, number: 0, track: 1, depth: 0 }]);
  await settled();
  assert.deepEqual(store.found(1, { level: 0, number: 5 }).map((found) => found.level), [3]);
  assert.deepEqual(store.found(1, { level: 0, number: 8 }), []);
  store.want([wanted(1, 0, 4), wanted(1, 0, 5)]);
  await settled();
  const place = { level: 1, number: 2 };
  assert.deepEqual(store.found(1, place).map((found) => [found.level, found.number]), [[0, 4], [0, 5]]);
});

test("an answer that failed is told, and tried again only later", async () => {
  const { store, asked, settled } = asking(() => {
    throw new Error("the server does not answer");
  });
  store.want([wanted(1)]);
  await settled();
  store.want([wanted(1)]);
  await settled();
  assert.equal(store.error, "the server does not answer");
  assert.equal(asked.length, 1);
});

test("a coarser answer than was asked for is told as downsampled", async () => {
  const { store, settled } = asking(() => page([slice(1, 0, 5, 5)], { start: 0, end: 65536, pixels: 1024 }));
  store.want([wanted(1)]);
  await settled();
  assert.equal(store.downsampled, 64);
});

test("answers that come in several pages are put together", async () => {
  const rows = [slice(1, 0, 1, 1), slice(1, 0, 2, 1), slice(1, 0, 3, 1)];
  const found = await loadAllRows(async (_, { from = 0 }) => page(rows.slice(from, from + 2), {}, from, 3), {}, {});
  assert.equal(found.rows, 3);
  assert.deepEqual([...(partsOf(found, PLACE, new Names()).get(1)?.lanes[0]?.start ?? [])], [1, 2, 3]);
});

test("codes of several pages keep their texts", async () => {
  const coded = (text: string, from: number): Page => ({
    ...page([slice(1, 0, from, 1)], {}, from, 2),
    columns: { ...page([slice(1, 0, from, 1)]).columns, name: { codes: [0], texts: [text] } },
  });
  const found = await loadAllRows(async (_, { from = 0 }) => coded(from ? "b" : "a", from), {}, {});
  assert.deepEqual(found.columns["name"], { codes: [0, 1], texts: ["a", "b"] });
});

test("batches keep the order of what is wanted", () => {
  const found = batches([wanted(1, 0, 1), wanted(1), wanted(2, 0, 1)], () => true);
  assert.deepEqual(found.map((batch) => batch.map((one) => one.track)), [[1, 2], [1]]);
});

test("what is beside the picture lies within the trace", () => {
  const limits = { from: 0, to: 4096 };
  assert.deepEqual(wantedParts({ from: 0, to: 1024 }, 0, limits).map(({ level, number }) => [level, number]), [[0, 1], [1, 0]]);
  assert.equal(width(3), 8192);
});

test("areas and stretches stand in the address, and what is none is none", () => {
  assert.deepEqual(readArea("-5-10:t1.c0"), { from: -5, to: 10, tracks: ["t1", "c0"] });
  assert.equal(areaText({ from: -5, to: 10, tracks: null }), "-5-10");
  assert.equal(readArea("5-x"), null);
  assert.deepEqual(readSpan("5", "9"), { from: 5, to: 9 });
  for (const [from, to] of [["9", "5"], ["x", "5"], [undefined, "5"]] as const) assert.equal(readSpan(from, to), null);
});

test("an area of all tracks has no list, and rows by name are asked of a server alone", () => {
  assert.deepEqual([areaText({ from: 1.4, to: 9.6, tracks: null }), areaText({ from: 1, to: 9, tracks: ["t1", "t2"] })], ["1-10", "1-9:t1.t2"]);
  assert.deepEqual([rowsOf("name", false), rowsOf("name", true), rowsOf(undefined, false)], [{ lanes: "name" }, {}, {}]);
});

test("sources share the requests that run at once", () => {
  for (const [sources, most] of [[1, 4], [2, 2], [4, 1], [8, 1]] as const) {
    let asked = 0;
    const store = new Store(() => new Promise<Page>(() => (asked += 1)), new Names());
    store.share(sources, () => {});
    store.want(Array.from({ length: 6 }, (_, number) => wanted(1, 0, number)));
    assert.equal(asked, most);
  }
});
