import assert from "node:assert/strict";
import { test } from "node:test";
import type { Page } from "../../../data/api.ts";
import { sliceAt } from "./hits.ts";
import { layoutTracks } from "../tracks/layout.ts";
import { Names } from "../drawing/names.ts";
import { adjacentSlice, nextMatch, sliceOfId } from "./nearby.ts";
import { RULER, Viewport, stepBeside } from "../drawing/viewport.ts";
import { Store } from "../tiles/store.ts";
import type { Track } from "../tracks/tracks.ts";

// row 0: a a . b      row 1 within the second a: c
const ROWS = [
  [0, 0, 100, "a", 0], [0, 100, 200, "a", 1], [0, 400, 100, "b", 3], [1, 150, 50, "c", 2], [1, 220, 10, "c", null],
] as const;

function page(): Page {
  const of = <T>(read: (row: (typeof ROWS)[number]) => T) => ({ values: ROWS.map(read) });
  const columns = {
    kind: of((row) => (row[4] === null ? "merged" : "slice")),
    track: of(() => 1), row: of((row) => row[0]), start: of((row) => row[1]), duration: of((row) => row[2]),
    busy: of((row) => row[2]), count: of(() => 1), name: of((row) => row[3]), category: of(() => "cpu_op"),
    id: of((row) => row[4]), self: of(() => 5),
  };
  return { view: "timeline", options: {}, all: 5, total: 5, from: 0, rows: 5, columns, totals: {}, lacks: [] };
}

async function known() {
  const track: Track = {
    key: "t1", id: 1, kind: "host", device: null, title: "t", label: "t", what: "", rows: 2, count: 5, start: 0, end: 500,
    low: 0, high: 0, peak: null, note: "", open: true,
  };
  const viewport = new Viewport({ from: 0, to: 1000 });
  viewport.width = 1000;
  viewport.height = 400;
  viewport.layout = layoutTracks([{ key: "g0", title: "p", tracks: [track] }], new Set());
  const names = new Names();
  const store = new Store(async () => page(), names);
  store.want([{ level: 0, number: 0, track: 1, depth: 0 }]);
  for (let turn = 0; turn < 9; turn++) await new Promise((done) => setTimeout(done, 0));
  return { viewport, store, names };
}

test("a slice is found under the pointer, and beside it if it is near", async () => {
  const { viewport, store, names } = await known();
  const y = RULER + 24 + 8;
  assert.equal(sliceAt(viewport, store, names, 50, y)?.id, 0);
  assert.equal(sliceAt(viewport, store, names, 100, y)?.id, 1);
  assert.equal(sliceAt(viewport, store, names, 302, y)?.id, 1);
  assert.equal(sliceAt(viewport, store, names, 350, y), null);
  assert.equal(sliceAt(viewport, store, names, 160, y + 17)?.name, "c");
  assert.equal(sliceAt(viewport, store, names, 160, RULER - 5), null);
  assert.equal(sliceAt(viewport, store, names, 398, y)?.id, 3);
  assert.equal(sliceAt(viewport, store, names, 303, y)?.id, 1);
  assert.equal(sliceAt(viewport, store, names, 304, y), null);
  assert.equal(sliceAt(viewport, store, names, 219, y + 17)?.start, 220); // nearer than the one that ended at 200
});

test("arrows go along the row, and into and out of a slice", async () => {
  const at = await known();
  const slice = (id: number) => sliceOfId(at, id) ?? assert.fail();
  assert.equal(adjacentSlice(at, slice(0), "next")?.id, 1);
  assert.equal(adjacentSlice(at, slice(1), "next")?.id, 3);
  assert.equal(adjacentSlice(at, slice(3), "next"), null);
  assert.equal(adjacentSlice(at, slice(3), "previous")?.id, 1);
  assert.equal(adjacentSlice(at, slice(0), "previous"), null);
  assert.equal(adjacentSlice(at, slice(1), "child")?.id, 2);
  assert.equal(adjacentSlice(at, slice(0), "child"), null);
  assert.equal(adjacentSlice(at, slice(2), "parent")?.id, 1);
  assert.equal(adjacentSlice(at, slice(2), "next"), null, "what is merged cannot be chosen");
  assert.equal(sliceOfId(at, 99), null);
});

test("the search goes on in time, forth and back", async () => {
  const at = await known();
  const isA = (name: number) => at.names.texts[name] === "a";
  const first = nextMatch(at, null, 1, isA);
  assert.equal(first?.id, 0);
  assert.equal(nextMatch(at, first, 1, isA)?.id, 1);
  assert.equal(nextMatch(at, sliceOfId(at, 1), 1, isA), null);
  assert.equal(nextMatch(at, sliceOfId(at, 3), -1, isA)?.id, 1);
});

test("steps follow one another, and the one that is seen in part comes first", () => {
  const steps = [0, 1, 2].map((number) => ({ number, start: number * 100, end: number * 100 + 100 }));
  assert.equal(stepBeside(steps, { from: 0, to: 300 }, 1)?.number, 1);
  assert.equal(stepBeside(steps, { from: 97, to: 203 }, 1)?.number, 2);
  assert.equal(stepBeside(steps, { from: 97, to: 203 }, -1)?.number, 0);
  assert.equal(stepBeside(steps, { from: 197, to: 303 }, 1), undefined);
  assert.equal(stepBeside([], { from: 0, to: 1 }, 1), undefined);
});
