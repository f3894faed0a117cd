import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Page } from "../../../data/api.ts";
import { alignmentText, distinctLabels, labelOf, parseAlignment, shiftOf } from "./beside.ts";
import { comparedText } from "./comparison.ts";
import { isTrack, queriesOf, queriesText, titleOf, withQuery, withoutQuery } from "./query-tracks.ts";
import { BESIDE, FIRST_QUERY, firstSource, groupsOf, ownId, placeOfId, placeOfTrack, queryGroups, shownFlow, shownId, shownTrack } from "./sources.ts";
import type { Source } from "./sources.ts";
import { counterText, mostOf } from "./tracks.ts";

function listed(...rows: readonly Record<string, string | number | null>[]): Page {
  const names = ["kind", "track", "category", "name", "start", "duration", "rows", "count", "low", "high", "peak", "note", "process", "device"];
  const columns = Object.fromEntries(names.map((name) => [name, { values: rows.map((row) => row[name] ?? null) }]));
  return { view: "timeline", options: {}, all: rows.length, total: rows.length, from: 0, rows: rows.length, columns, totals: {}, lacks: [] };
}

const host = { kind: "track", track: 3, category: "host", name: "main", start: 10, duration: 50, rows: 2, count: 9, process: "python" };
const counter = { kind: "counter", category: "flops", name: "device 0 FLOP/s", start: 0, duration: 9, count: 2, low: 0, high: 5, peak: 20, note: "half of it.", device: 0 };

describe("queries in the address", () => {
  const text = "-- a; b\nselect ';' as name, start\n;\nselect \"x;y\" -- end";
  test("are separated by semicolons outside quotes and comments", () => {
    const queries = queriesOf(text);
    assert.deepEqual(queries, ["-- a; b\nselect ';' as name, start", "select \"x;y\" -- end"]);
    assert.deepEqual(queriesOf(queriesText(queries)), queries);
    assert.deepEqual([queriesOf(undefined), queriesText([])], [[], undefined]);
  });
  test("are added once, and taken away", () => {
    const two = withQuery(withQuery(undefined, "select 1"), "select 2");
    assert.deepEqual(queriesOf(two), ["select 1", "select 2"]);
    assert.equal(withQuery(two, "select 1;"), two);
    assert.deepEqual([withoutQuery(two, "select 1"), withoutQuery("select 1", "select 1")], ["select 2", undefined]);
  });
  test("have the comment at their begin as title", () => {
    assert.deepEqual([titleOf("-- long\nselect 1"), titleOf("select\n  1")], ["long", "select 1"]);
  });
  test("make a track with a start, and a duration or a value", () => {
    const of = (...names: string[]) => isTrack(names.map((name) => ({ name, type: "integer", unit: "id", doc: "", nullable: true, labels: {} })));
    assert.deepEqual([of("start_ns", "duration"), of("time", "value"), of("start", "name"), of("duration", "value")], [true, true, false, false]);
  });
});

describe("a second trace", () => {
  const steps = (...starts: number[]) => starts.map((start, at) => ({ number: at + 5, start, end: start + 9 }));
  test("is aligned by the origins, a step or an offset, which stand in the address", () => {
    for (const word of ["step.3", "step.3.5", "-1200"]) assert.equal(alignmentText(parseAlignment(word)), word);
    assert.deepEqual([parseAlignment(undefined), parseAlignment("step.x")], [{ by: "origin" }, { by: "origin" }]);
    assert.equal(shiftOf({ by: "origin" }, [], []), 0);
    assert.equal(shiftOf(parseAlignment("-1200"), [], []), -1200);
    assert.equal(shiftOf(parseAlignment("step.6.5"), steps(100, 200), steps(30)), 170);
  });
  test("is not shown by a step that one of them lacks", () => {
    assert.throws(() => shiftOf(parseAlignment("step.7"), steps(1, 2), steps(1)), /first trace has no step 7; it has the steps 5 to 6/);
    assert.throws(() => shiftOf(parseAlignment("step.5"), steps(1), []), /second trace has no steps/);
  });
  test("has the part of its name that tells it apart", () => {
    assert.deepEqual(distinctLabels("v100-resnet-workers0", "v100-resnet-workers4"), ["workers0", "workers4"]);
    assert.deepEqual(distinctLabels("runs/a/trace", "runs/b/trace"), ["a", "b"]);
    assert.deepEqual(distinctLabels("a", "a"), ["first", "second"]);
    const info = { id: "1", run: "", worker: "", span: "", name: "t.json", bytes: 0, job: "", is_ledger: false, modified: null, device: null, steps: null };
    assert.deepEqual([labelOf(info), labelOf({ ...info, run: "r", worker: "w" })], ["t.json", "r, w"]);
  });
  test("stands below the first with a clock of its own, and keys that nothing else changes", () => {
    const second: Source = { at: BESIDE, label: "after", trace: "b", stretch: 1, shift: 500 };
    const groups = groupsOf([firstSource("a", "before"), second], [listed(host, counter), listed(host, counter)]);
    assert.deepEqual(groups.map(({ of, title, leads }) => [of, title, leads]), [
      ["before", "python", false], ["before", "Counters", false], ["after", "python", true], ["after", "Counters", false],
    ]);
    assert.equal(groups[2]?.clock, second);
    assert.deepEqual(groups.filter((group) => group.clock !== undefined).length, 1);
    const [track] = groups[2]?.tracks ?? [];
    assert.deepEqual([track?.start, track?.end, track?.open], [510, 560, true]);
    assert.equal(groupsOf([firstSource("a")], [listed(host)])[0]?.of, undefined);
  });
});

test("queries are tracks of one group, by their places", () => {
  const source = (number: number): Source => ({ ...firstSource("a"), at: FIRST_QUERY + number, query: `select ${number}` });
  const row = { ...host, track: 0, category: "query", process: null };
  const [group, ...others] = queryGroups([source(0), source(2)], [listed(row), listed({ ...counter, category: "counter" })]);
  assert.equal(others.length, 0);
  assert.deepEqual(group?.tracks.map(({ key, kind, open }) => [key, kind, open]), [[`t${FIRST_QUERY * 2 ** 20}`, "query", true], [`c${(FIRST_QUERY + 2) * 1000}`, "query", true]]);
  assert.deepEqual(queryGroups([], []), []);
});

test("the scale of FLOP/s ends at the peak, unless they are higher", () => {
  const [track] = groupsOf([firstSource("a")], [listed(counter, host)])[0]?.tracks ?? [];
  assert.ok(track);
  assert.deepEqual([mostOf(track), mostOf({ ...track, high: 30 }), mostOf({ ...track, peak: null })], [20, 30, 5]);
  assert.deepEqual([track.note, counterText(track.kind, 2e12), counterText("utilization", 3)], ["half of it.", "2.00 TFLOP/s", "3.0 %"]);
});

test("durations are compared in words", () => {
  const basis = { name: "aten::mm", duration: 100_000 };
  assert.equal(comparedText(125_000, basis), "25.0 µs longer than aten::mm, 100 µs: 1.25 times as long");
  assert.equal(comparedText(50_000, basis), "50.0 µs shorter than aten::mm, 100 µs: 0.50 times as long");
  assert.equal(comparedText(100_000, basis), "as long as aten::mm, 100 µs");
  assert.equal(comparedText(5, { name: "x", duration: 0 }), "5 ns longer than x, 0 ms");
});

test("ids, tracks and times of a source are its own again; those of none stay none", () => {
  const source: Source = { ...firstSource("b"), at: 3, stretch: 2, shift: 100 };
  assert.deepEqual([0, 7, -1].map((id) => ownId(shownId(source, id))), [0, 7, -1]);
  assert.deepEqual([shownId(source, 0), 0, -1].map(placeOfId), [3, 0, 0]);
  assert.deepEqual([shownTrack(source, 0), shownTrack(source, -1), 0, -1].map(placeOfTrack), [3, 3, 0, 0]);
  const flow = { name: "launch", id: 1, start: 5, track: 2, row: 0, to: 4, toTime: 6, toTrack: 3, toRow: 1 };
  assert.deepEqual(shownFlow(source, flow), {
    name: "launch", id: shownId(source, 1), start: 110, track: shownTrack(source, 2), row: 0,
    to: shownId(source, 4), toTime: 112, toTrack: shownTrack(source, 3), toRow: 1,
  });
  assert.equal(FIRST_QUERY, BESIDE + 1);
});
