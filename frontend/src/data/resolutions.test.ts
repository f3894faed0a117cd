import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Options } from "./api.ts";
import type { ReportTable } from "./inline.ts";
import { suitableResolution, isTimeRangeQuery, rowsInRange } from "./resolutions.ts";
import type { Table } from "./table.ts";

function held(options: Options, view = "timeline"): ReportTable {
  return { view, options, packed: "" };
}

const LEVELS = [
  held({ what: "tracks" }),
  held({ start: 0, end: 8192, pixels: 2 }),
  held({ start: 0, end: 8192, pixels: 8192 }),
  held({ start: 0, end: 8192, pixels: 128 }),
  held({ by: "line" }, "operators"),
];

describe("the resolution for a question", () => {
  const cases: [string, Options, Options][] = [
    ["one that is exactly so fine", { start: 0, end: 1024, pixels: 16 }, { start: 0, end: 8192, pixels: 128 }],
    ["the coarsest that is finer", { start: 0, end: 1024, pixels: 100 }, { start: 0, end: 8192, pixels: 8192 }],
    ["a coarse one for a coarse question", { start: 0, end: 8192, pixels: 1 }, { start: 0, end: 8192, pixels: 2 }],
    ["the finest if none is fine enough", { start: 0, end: 10, pixels: 100 }, { start: 0, end: 8192, pixels: 8192 }],
    ["the coarsest for all time", {}, { start: 0, end: 8192, pixels: 2 }],
  ];
  for (const [title, asked, found] of cases) {
    test(title, () => assert.deepEqual(suitableResolution(LEVELS, asked)?.options, found));
  }
  test("none where none is carried", () => assert.equal(suitableResolution([held({ what: "tracks" })], {}), undefined));
});

test("only questions for a stretch of time are of tiles", () => {
  assert.equal(isTimeRangeQuery("timeline", { start: 0 }), true);
  assert.equal(isTimeRangeQuery("timeline", { what: "tracks" }), false);
  assert.equal(isTimeRangeQuery("timeline", { selected: 3 }), false);
  assert.equal(isTimeRangeQuery("operators", {}), false);
});

const TABLE: Table = {
  columns: [],
  rows: 5,
  values: {
    kind: { codes: [0, 0, 1, 2, 2], texts: ["slice", "instant", "counter"] },
    track: { values: [1, 2, 2, null, 1] },
    start: { values: [0, 50, 90, 0, 60] },
    duration: { values: [100, 20, null, 60, 60] },
  },
};

describe("rows of a stretch of time on some tracks", () => {
  const cases: [string, Options, number[]][] = [
    ["all", {}, [0, 1, 2, 3, 4]],
    ["those that reach into it", { start: 80, end: 85 }, [0, 4]],
    ["those that begin before its end", { start: 0, end: 50 }, [0, 3]],
    ["an end of 0 is the trace's", { start: 65, end: 0 }, [0, 1, 2, 4]],
    ["of a track, with its counters", { tracks: "1" }, [0, 4]],
    ["of two tracks", { tracks: "1,2" }, [0, 1, 2, 4]],
    ["counters alone", { tracks: "counters" }, [3, 4]],
    ["a track and all counters", { tracks: "2,counters" }, [1, 2, 3, 4]],
    ["a kind of tracks: the page leaves out what it does not draw", { tracks: "host" }, [0, 1, 2, 3, 4]],
  ];
  for (const [title, options, rows] of cases) {
    test(title, () => assert.deepEqual([...rowsInRange(TABLE, options)], rows));
  }
});
