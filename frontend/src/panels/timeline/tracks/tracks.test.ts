import assert from "node:assert/strict";
import { test } from "node:test";
import type { Cell, Page } from "../../../data/api.ts";
import { ROW, allKey, depthOf, layoutTracks, openTrackRow, partsFor, parseToggled, toggleKey, toggledText } from "./layout.ts";
import { DEPTH, groupTracks } from "./tracks.ts";

type Row = Record<string, Cell>;

function page(rows: readonly Row[]): Page {
  const names = ["kind", "track", "row", "category", "name", "process", "start", "duration", "rows", "count", "low", "high"];
  const columns = Object.fromEntries(names.map((name) => [name, { values: rows.map((row) => row[name] ?? null) }]));
  return { view: "timeline", options: {}, all: rows.length, total: rows.length, from: 0, rows: rows.length, columns, totals: {}, lacks: [] };
}

function track(track: number, category: string, name: string, process: string, rows = 1, count = 10): Row {
  return { kind: "track", track, category, name, process, start: 0, duration: 100, rows, count };
}

const PYTHON = track(1, "python", "thread 7 (main)", "python, CPU", 40, 5000);
const MAIN = track(2, "host", "thread 7 (main)", "python, CPU", 6, 900);
const STREAM = track(3, "device", "stream 7", "python, GPU 0", 1, 400);
const SPANS = track(4, "profiler", "PyTorch Profiler", "Spans", 1, 1);
const EMPTY = track(5, "host", "thread 9", "python, CPU", 0, 0);
const BUSY: Row = { kind: "counter", category: "utilization", name: "device 0 percent busy", start: 0, duration: 9, count: 4, low: 0, high: 100 };
const QUEUE: Row = { kind: "counter", track: 3, category: "queue", name: "device 0 stream 7 queued", start: 0, duration: 9, count: 4, low: 0, high: 5 };

const GROUPS = groupTracks(page([STREAM, PYTHON, MAIN, SPANS, EMPTY, BUSY, QUEUE]));

const NOTHING: ReadonlySet<string> = new Set();

test("counters stand first, then threads, streams, the rest; empty tracks nowhere", () => {
  assert.deepEqual(GROUPS.map((group) => group.title), ["Counters", "python, CPU", "python, GPU 0", "Spans"]);
  assert.deepEqual(GROUPS[1]?.tracks.map((track) => track.key), ["t1", "t2"]);
  assert.deepEqual(GROUPS[0]?.tracks.map((track) => track.label), ["device 0 busy", "stream 7 queued"]);
  assert.equal(GROUPS[1]?.tracks[0]?.label, "main 7");
});

test("the main thread, streams and counters are open, the recorder's group is folded", () => {
  const open = GROUPS.flatMap((group) => group.tracks).filter((track) => track.open).map((track) => track.key);
  assert.deepEqual(open.sort(), ["c0", "c1", "t1", "t2", "t3"]);
  const heads = layoutTracks(GROUPS, new Set()).lines.filter((line) => line.kind === "group");
  assert.deepEqual(heads.map((line) => line.open), [true, true, true, false]);
});

test("where there is no room, frames stay folded", () => {
  const crowd = Array.from({ length: 20 }, (_, at) => track(10 + at, "host", `thread ${at} (w)`, "python, CPU", 6, 5));
  const [group] = groupTracks(page([PYTHON, MAIN, ...crowd]));
  assert.equal(group?.tracks[0]?.open, false);
  assert.equal(group?.tracks[1]?.open, true);
});

test("processes that have a number only are told as such", () => {
  const groups = groupTracks(page([track(1, "host", "thread 5", "6583"), track(2, "device", "stream 7", "0")]));
  assert.deepEqual(groups.map((group) => group.title), ["process 6583", "device 0"]);
});

test("frames without operators are open: there is nothing else to see", () => {
  const [group] = groupTracks(page([PYTHON]));
  assert.equal(group?.tracks[0]?.open, true);
});

test("lines follow one another without a gap, as high as their rows", () => {
  const { lines, height } = layoutTracks(GROUPS, new Set());
  let y = 0;
  for (const line of lines) {
    assert.equal(line.y, y);
    y += line.height;
  }
  assert.equal(height, y);
  const main = lines.find((line) => line.key === "t2");
  assert.ok(main && main.height >= 6 * ROW && main.rows === 6 && depthOf(main) === 0);
});

test("deep tracks show their uppermost rows until all are asked for", () => {
  const deep = (turned: ReadonlySet<string>) => layoutTracks(GROUPS, turned).lines.find((line) => line.key === "t1");
  assert.deepEqual([deep(new Set())?.rows, deep(new Set())?.hidden], [DEPTH, 40 - DEPTH]);
  const all = deep(new Set([allKey(GROUPS[1]!.tracks[0]!)]));
  assert.deepEqual([all?.rows, all?.hidden], [40, 0]);
  const folded = deep(new Set(["t1"]));
  assert.ok(folded && !folded.open && folded.rows === 1 && folded.hidden === 0 && depthOf(folded) === 1);
});

test("where rows are by name, the name of the track stands above those of its rows", () => {
  const row = (at: number, name: string): Row => ({ kind: "row", track: 3, row: at, name, duration: 60 - at, count: 2 });
  const [group] = groupTracks(page([{ ...STREAM, rows: 2 }, row(1, "relu"), row(0, "gemm")]));
  const stream = group!.tracks[0]!;
  assert.deepEqual(stream.names, [{ name: "gemm", time: 60, count: 2 }, { name: "relu", time: 59, count: 2 }]);
  const line = (turned: ReadonlySet<string>) => layoutTracks([group!], turned).lines[1]!;
  assert.deepEqual([line(new Set()).head, line(new Set()).rows], [ROW, 2]);
  assert.equal(line(new Set()).height - line(new Set(["t3"])).height, 2 * ROW);
  assert.equal(line(new Set(["t3"])).head, 0, "a folded one is as high as others");
});

test("what was turned stands in the address and comes back", () => {
  const turned = toggleKey(toggleKey(new Set(), "t3"), "g0");
  assert.equal(toggledText(turned), "g0.t3");
  assert.deepEqual(parseToggled("g0.t3"), turned);
  assert.equal(toggledText(toggleKey(toggleKey(turned, "g0"), "t3")), undefined);
  assert.deepEqual(parseToggled("g0.<script>.t1x"), new Set(["g0"]));
  assert.deepEqual(parseToggled(undefined), new Set());
});

test("what hides a row is opened, and nothing else", () => {
  assert.equal(openTrackRow(GROUPS, NOTHING, 2, 3), NOTHING);
  assert.equal(openTrackRow(GROUPS, NOTHING, 99, 0), NOTHING);
  assert.deepEqual(openTrackRow(GROUPS, NOTHING, 1, 20), new Set(["a1"]));
  assert.deepEqual(openTrackRow(GROUPS, new Set(["t1"]), 1, 20), new Set(["a1"]));
  assert.deepEqual(openTrackRow(GROUPS, new Set(["g1", "t2"]), 2, 0), new Set(["t2"]));
  assert.deepEqual(openTrackRow(GROUPS, NOTHING, 4, 0), new Set(["g3"]));
});

test("tiles are asked for the rows that are shown, and once for all counters", () => {
  const { lines } = layoutTracks(GROUPS, new Set(["t2"]));
  const found = partsFor(lines, [{ level: 3, number: 5 }]);
  assert.deepEqual(found.map((part) => [part.track, part.depth]), [[1, DEPTH], [2, 1], [3, 0], [-1, 0]]);
  assert.deepEqual(partsFor(lines.filter((line) => line.kind === "group"), [{ level: 3, number: 5 }]), []);
});
