import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { deflateSync } from "node:zlib";
import { DataError } from "./api.ts";
import type { Cell, ViewSpec } from "./api.ts";
import { InlineData } from "./inline.ts";
import type { ReportData } from "./inline.ts";
import { cells } from "../parts/data/full-table.ts";

const packed = (value: unknown) => deflateSync(JSON.stringify(value)).toString("base64");

const OPERATORS: ViewSpec = {
  name: "operators",
  title: "Operators.",
  doc: "Operators.",
  needs: [],
  across: false,
  options: [
    { name: "by", type: "text", default: "name", choices: [], parts: [] },
    { name: "top", type: "int", default: 0, choices: [], parts: [] },
  ],
  columns: [
    { name: "name", unit: "name", doc: "The name.", nullable: false, labels: {} },
    { name: "time", unit: "ns", doc: "Its time.", nullable: true, labels: {} },
  ],
};
const RANKS: ViewSpec = { ...OPERATORS, name: "ranks", across: true };
const TIMELINE: ViewSpec = {
  ...OPERATORS,
  name: "timeline",
  options: [{ name: "what", type: "choice", default: "visible", choices: ["visible", "tracks"], parts: [] }],
  columns: [
    { name: "kind", unit: "name", doc: "The kind.", nullable: false, labels: {} },
    { name: "start", unit: "instant", doc: "Begin.", nullable: false, labels: {} },
  ],
};

/** Three rows of the five that there are. */
const ROWS = {
  view: "operators",
  options: { by: "name", top: 0 },
  all: 5,
  total: 5,
  from: 0,
  rows: 3,
  columns: { name: { codes: [0, 1, 0], texts: ["mm", "add"] }, time: { values: [30, 20, null] } },
  totals: { time: 61 },
  lacks: ["shapes: run with --shapes"],
};
const TILE = {
  ...ROWS,
  view: "timeline",
  options: { start: 0, end: 100, pixels: 100 },
  all: 3,
  total: 3,
  columns: { kind: { same: "slice" }, start: { steps: [0, 40, 40] } },
  totals: {},
  lacks: [],
};
const CARRIED: ReportData = {
  format: "selftime.report/1",
  start: "",
  traces: [{ id: "a", name: "a.json", run: "", worker: "a", span: "", bytes: 1, job: "j", is_ledger: false, modified: null, device: null, steps: null }],
  views: packed([OPERATORS, TIMELINE, RANKS]),
  rules: packed({ slow_input: "# slow_input" }),
  compared: null,
  held: {
    a: {
      contents: packed({ landing: "answer", lacks: {} }),
      advice: packed({ format: "selftime.advice/1" }),
      tables: [
        { view: "operators", options: {}, packed: packed(ROWS) },
        { view: "operators", options: { by: "shape" }, packed: packed({ ...ROWS, all: 3, total: 3 }) },
        { view: "operators", options: { by: "line", top: 3 }, packed: packed(ROWS) },
        { view: "timeline", options: { start: 0, end: 100, pixels: 100 }, packed: packed(TILE) },
      ],
      sources: {
        "train.py": packed({ count: 100, parts: [{ from: 11, lines: ["l11", "l12"] }, { from: 50, lines: ["l50"] }] }),
      },
    },
  },
  jobs: [
    {
      traces: ["a", "b"],
      job: packed({ size: 2 }),
      tables: [{ view: "ranks", options: {}, packed: packed({ ...ROWS, all: 3, total: 3 }) }],
    },
  ],
};
const data = new InlineData(CARRIED);

function column(page: { columns: Record<string, Parameters<typeof cells>[0]> }, name: string): Cell[] {
  return cells(page.columns[name]);
}

describe("a table in a report", () => {
  test("tells how many rows there are, and how many it has of them", async () => {
    const page = await data.page("a", "operators", {}, {});
    assert.deepEqual([page.all, page.total, page.held, page.rows], [5, 3, 3, 3]);
    assert.deepEqual(page.totals, { time: 61 });
    assert.deepEqual(column(page, "name"), ["mm", "add", "mm"]);
    assert.deepEqual(page.lacks, ["shapes: run with --shapes"]);
  });
  test("is whole without a word", async () => {
    const page = await data.page("a", "operators", { by: "shape" }, {});
    assert.deepEqual([page.all, page.total, "held" in page], [3, 3, false]);
  });
  test("is searched, sorted and windowed", async () => {
    const query = { find: "MM", sort: "time", rows: 1 };
    const page = await data.page("a", "operators", {}, query);
    assert.deepEqual([page.total, page.from, page.rows, page.totals], [2, 0, 1, { time: 30 }]);
    assert.deepEqual(column(page, "time"), [30]);
  });
  test("is asked for by its own default as without it", async () => {
    const page = await data.page("a", "operators", { by: "name" }, { columns: ["time"] });
    assert.deepEqual(Object.keys(page.columns), ["time"]);
  });
  test("is cut to the first rows where these are asked for", async () => {
    const page = await data.page("a", "operators", { by: "shape", top: 2 }, { sort: "time" });
    assert.deepEqual(column(page, "time"), [20, 30]);
    assert.equal(page.total, 2);
  });
  test("of fewer rows than asked for is not it", async () => {
    assert.equal((await data.page("a", "operators", { by: "line", top: 3 }, {})).total, 3);
    assert.equal((await data.page("a", "operators", { by: "line", top: 2 }, {})).all, 2);
    await assert.rejects(data.page("a", "operators", { by: "line", top: 9 }, {}), DataError);
    await assert.rejects(data.page("a", "operators", { by: "line" }, {}), DataError);
    assert.equal((await data.page("a", "operators", { by: "shape", top: 9 }, {})).all, 3); // all that there are
  });
  test("that is not carried is told with its options", async () => {
    await assert.rejects(data.page("a", "operators", { by: "stack" }, {}), (error: unknown) => {
      assert.ok(error instanceof DataError);
      assert.match(error.message, /`operators` with `by` as `stack`; `selftime serve` on the trace shows it/);
      return true;
    });
  });
  test("of no view is refused", async () => {
    await assert.rejects(data.page("a", "nonesuch", {}, {}), DataError);
    await assert.rejects(data.page("b", "operators", {}, {}), DataError);
  });
});

describe("tiles", () => {
  test("are cut from a resolution, whose options are told", async () => {
    const page = await data.page("a", "timeline", { start: 30, end: 60, pixels: 10 }, {});
    assert.deepEqual(page.options, { start: 0, end: 100, pixels: 100 });
    assert.deepEqual(column(page, "start"), [40]);
    assert.equal(page.total, 1);
  });
  test("do not answer which slices are related to a slice", async () => {
    await assert.rejects(data.page("a", "timeline", { selected: 3 }, {}), DataError);
  });
});

describe("source", () => {
  test("around a line that is carried", async () => {
    const source = await data.source("a", "train.py", 12, 5);
    assert.deepEqual(source, { file: "train.py", from: 12, lines: ["l12"], count: 100 });
  });
  test("begins where it is carried", async () => {
    const source = await data.source("a", "train.py", 1, 1000);
    assert.deepEqual(source, { file: "train.py", from: 11, lines: ["l11", "l12"], count: 100 });
  });
  test("is null elsewhere", async () => {
    assert.equal(await data.source("a", "train.py", 60, 10), null);
    assert.equal(await data.source("a", "train.py", 1, 10), null); // ends where the carried part begins
    assert.equal(await data.source("a", "train.py", 13, 10), null); // begins where it has ended
    assert.equal(await data.source("a", "other.py", 1, 10), null);
  });
});

describe("what is asked of one trace", () => {
  const number = (of: string, ids: readonly number[]) => ({ of, rule: "r", text: of, slices: { columns: { id: { values: ids } } }, stretches: [] });
  const alone = new InlineData({
    ...CARRIED,
    jobs: [],
    held: { a: { ...CARRIED.held["a"]!, tables: [...CARRIED.held["a"]!.tables, { view: "number_slices", options: {}, packed: packed([number("finding:1", [3, 4])]) }] } },
  });
  test("needs no job that it is of", async () => {
    assert.equal((await alone.page("a", "operators", {}, {})).all, 5);
    await assert.rejects(alone.page("a", "ranks", {}, {}), DataError);
  });
  test("are its numbers and their slices, which the report carries", async () => {
    const found = await alone.numbersOfSlice("a", 4);
    assert.deepEqual([found.known, found.numbers.map(({ of }) => of)], [true, ["finding:1"]]);
    assert.deepEqual((await alone.numbersOfSlice("a", 5)).numbers, []);
    assert.equal((await alone.numberSlices("a", "finding:1")).of, "finding:1");
    await assert.rejects(alone.numberSlices("a", "finding:2"), DataError);
    assert.deepEqual(await data.numbers("a"), { known: true, numbers: [] });
  });
});

describe("the callers and callees of a name", () => {
  const FLAME: ViewSpec = {
    ...OPERATORS,
    name: "flame",
    options: [{ name: "order", type: "choice", default: "top_down", choices: [], parts: [] }, { name: "of", type: "text", default: "", choices: [], parts: [] }],
    columns: ["id", "parent", "name", "kind", "depth", "total_time", "self_time", "count"].map((name) => ({ name, unit: "count" as const, doc: "", nullable: true, labels: {} })),
  };
  const flame = (order: string, rows: Cell[][]) => ({
    view: "flame", options: { order }, packed: packed({
      ...ROWS, view: "flame", options: { order }, all: rows.length, total: rows.length, rows: rows.length, totals: {},
      columns: Object.fromEntries(FLAME.columns.map(({ name }, at) => [name, { values: rows.map((row) => row[at] ?? null) }])),
    }),
  });
  const graph = flame("top_down", [[0, null, "a", "operator", 0, 100, 60, 1], [1, 0, "b", "operator", 1, 40, 40, 2]]);
  const flat = flame("flat", [[0, null, "a", "operator", 0, 100, 60, 1], [1, null, "b", "operator", 0, 40, 40, 2]]);
  const report = (tables: ReportData["held"][string]["tables"]) => new InlineData({ ...CARRIED, views: packed([FLAME]), held: { a: { ...CARRIED.held["a"]!, tables } } });
  test("are made of the graph of all names", async () => {
    const page = await report([graph, flat]).page("a", "flame", { of: "b", order: "bottom_up" }, {});
    assert.deepEqual(column(page, "name"), ["b", "a"]);
    assert.deepEqual([page.options["of"], page.totals], ["b", { self_time: 40 }]);
  });
  test("are not there without it", async () => {
    await assert.rejects(report([flat]).page("a", "flame", { of: "b" }, {}), /does not carry `flame`/);
    await assert.rejects(report([graph, flat]).page("a", "flame", { of: "gone" }, {}), /does not carry `flame`/);
  });
});

test("rule pages are those that were carried", async () => {
  assert.equal(await data.rule("slow_input"), "# slow_input");
  await assert.rejects(data.rule("other"), /selftime explain other/);
});

test("advice and traces", async () => {
  assert.equal((await data.advice("a")).format, "selftime.advice/1");
  assert.equal((await data.traces()).length, 1);
  assert.equal(data.csv(), null);
});

describe("a comparison in a report", () => {
  const told = { metric: "device", metrics: ["device", "host"], notes: ["the ranks differ"], specs: {}, tables: { tree: ROWS } };
  const paired = new InlineData({
    ...CARRIED,
    compared: { before: "a", after: "b", tables: [{ view: "compare", options: { metric: "device" }, packed: packed(told) }] },
  });
  test("is the first one that is carried, unless a metric is asked for", async () => {
    const found = await paired.compare({ before: "a", after: "b" }, null);
    assert.deepEqual(found.notes, ["the ranks differ"]);
    assert.deepEqual(column(found.tables.tree, "name"), ["mm", "add", "mm"]);
    assert.equal(await paired.compare({ before: "a", after: "b" }, "device"), found);
    assert.equal(paired.pair?.after, "b");
  });
  test("is of these two, in this order, and by what is carried", async () => {
    await assert.rejects(paired.compare({ before: "b", after: "a" }, null), /selftime compare BEFORE AFTER/);
    await assert.rejects(paired.compare({ before: "a", after: "b" }, "host"), /time of the host/);
    await assert.rejects(data.compare({ before: "a", after: "b" }, null), DataError);
    assert.equal(data.pair, null);
  });
});

describe("what a report carries of a job", () => {
  test("is answered for each of its traces", async () => {
    for (const trace of ["a", "b"]) {
      assert.deepEqual(await data.job(trace), { size: 2 });
      assert.deepEqual(column(await data.page(trace, "ranks", {}, {}), "name"), ["mm", "add", "mm"]);
    }
  });
  test("is of no other trace", async () => {
    await assert.rejects(data.job("c"), DataError);
    await assert.rejects(data.page("c", "ranks", {}, {}), DataError);
  });
});
