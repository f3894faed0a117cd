import assert from "node:assert/strict";
import { test } from "node:test";
import { PINS, USUAL, arranged, arrangementWords, groupedBy, movedTo, neighbour, readArrangement, showing, toggleHidden, togglePin } from "./arrangement.ts";
import type { Arrangement } from "./arrangement.ts";
import type { Group, Track } from "./tracks.ts";

function track(id: number, kind: string, title: string, device: number | null = null): Track {
  const key = id < 0 ? `c${-1 - id}` : `t${id}`;
  return { key, id: id < 0 ? -1 : id, kind, device, title, label: title, what: kind, rows: 1, count: 5, start: 0, end: 9, low: 0, high: 0, peak: null, note: "", open: true };
}

const GROUPS: readonly Group[] = [
  { key: "g0", title: "Counters", tracks: [track(-1, "utilization", "device 0 busy", 0), track(-2, "memory", "CPU allocated")] },
  { key: "g1", title: "python, CPU", tracks: [track(1, "python", "main 7"), track(2, "host", "main 7"), track(3, "host", "autograd 8")] },
  { key: "g2", title: "python, GPU 0", tracks: [track(4, "device", "stream 7", 0), track(5, "device annotation", "stream 7", 0)] },
];

const seen = (arrangement: Arrangement) => arranged(GROUPS, arrangement).map((group) => [group.title, ...group.tracks.map((one) => one.key)]);
const keys = (arrangement: Arrangement) => arranged(GROUPS, arrangement).flatMap((group) => group.tracks.map((one) => one.key)).join(" ");

test("as usual nothing is different, and nothing stands in the address", () => {
  assert.deepEqual(arranged(GROUPS, USUAL), GROUPS);
  assert.ok(Object.values(arrangementWords(USUAL)).every((word) => word === undefined));
  assert.deepEqual(readArrangement({}), USUAL);
});

test("what is arranged stands in the address and comes back; what is no key does not", () => {
  const arrangement: Arrangement = { by: "kind", pins: ["t4", "c0"], hidden: ["g1", "t2"], order: ["t5", "t4"], only: "gpu" };
  const words = arrangementWords(arrangement);
  assert.deepEqual(words, { by: "kind", pin: "t4.c0", hide: "g1.t2", order: "t5.t4", tracks: "gpu" });
  assert.deepEqual(readArrangement(words), arrangement);
  assert.deepEqual(readArrangement({ by: "x", pin: "t1.t1.<b>.p0" }), { ...USUAL, pins: ["t1"] });
});

test("pinned tracks leave their group for the top, in their order, and tell where they are from", () => {
  const pinned = togglePin(togglePin(USUAL, "t4"), "c0");
  assert.deepEqual(seen(pinned)[0], ["Pinned", "t4", "c0"]);
  assert.equal(arranged(GROUPS, pinned)[0]?.key, PINS);
  assert.equal(arranged(GROUPS, pinned)[0]?.tracks[0]?.what, "device · python, GPU 0");
  assert.deepEqual(seen(pinned)[3], ["python, GPU 0", "t5"]);
  assert.deepEqual(togglePin(pinned, "t4").pins, ["c0"]);
  assert.deepEqual(seen({ ...pinned, only: "nothing" }), [["Pinned", "t4", "c0"]]);
});

test("hidden tracks and groups are left out until they are shown again", () => {
  const hidden = toggleHidden(toggleHidden(togglePin(USUAL, "t2"), "t2"), "g0");
  assert.deepEqual(hidden.pins, []);
  assert.equal(keys(hidden), "t1 t3 t4 t5");
  assert.equal(keys(toggleHidden(toggleHidden(hidden, "t2"), "g0")), keys(USUAL));
});

test("the filter looks into the names of tracks, kinds and groups", () => {
  assert.equal(keys({ ...USUAL, only: "AUTO" }), "t3");
  assert.equal(keys({ ...USUAL, only: "annotation" }), "t5");
  assert.equal(keys({ ...USUAL, only: "gpu 0" }), "t4 t5");
});

test("a move changes places within a list alone, and a move back leaves nothing behind", () => {
  const moved = movedTo(GROUPS, USUAL, "t3", "t1");
  assert.equal(keys(moved), "c0 c1 t3 t1 t2 t4 t5");
  assert.deepEqual(moved.order, ["t3", "t1", "t2"]);
  const both = movedTo(GROUPS, moved, "g2", "g1");
  assert.equal(keys(both), "c0 c1 t4 t5 t3 t1 t2");
  assert.deepEqual(both.order, ["t3", "t1", "t2", "g2", "g1"]);
  assert.deepEqual(movedTo(GROUPS, moved, "t3", "t2"), USUAL);
  assert.equal(movedTo(GROUPS, USUAL, "t3", "t4"), USUAL, "of another group");
  assert.deepEqual(movedTo(GROUPS, { ...USUAL, pins: ["t4", "c0"] }, "c0", "t4").pins, ["c0", "t4"]);
});

test("neighbours are those that are shown", () => {
  assert.equal(neighbour(GROUPS, USUAL, "t1", 1), "t2");
  assert.equal(neighbour(GROUPS, toggleHidden(USUAL, "t2"), "t1", 1), "t3");
  assert.equal(neighbour(GROUPS, USUAL, "t1", -1), undefined);
  assert.equal(neighbour(GROUPS, togglePin(USUAL, "t4"), "g0", -1), undefined);
});

test("by kind and by device the same tracks stand in other groups", () => {
  assert.deepEqual(seen({ ...USUAL, by: "kind" }), [
    ["Counters", "c0", "c1"], ["Kernels and copies", "t4"], ["Operators", "t2", "t3"], ["Python frames", "t1"], ["Annotations of devices", "t5"],
  ]);
  assert.deepEqual(seen({ ...USUAL, by: "device" }), [["python, CPU", "t1", "t2", "t3"], ["device 0", "c0", "t4", "t5"], ["Counters", "c1"]]);
  const ranks = [...GROUPS.map((group) => ({ ...group, of: "0", at: 0 })), ...GROUPS.map((group) => ({ ...group, of: "1", at: 1 }))];
  const devices = arranged(ranks, { ...USUAL, by: "device" }).filter((group) => group.title === "device 0");
  assert.deepEqual(devices.map((group) => [group.of, group.tracks.length]), [["0", 3], ["1", 3]]);
  assert.equal(arranged(ranks, { ...USUAL, by: "kind" })[1]?.tracks[1]?.what, "1, python, GPU 0");
  assert.deepEqual(groupedBy({ ...USUAL, hidden: ["g1", "t2"], order: ["g2", "g1", "t3", "t2"] }, "kind"), { ...USUAL, by: "kind", hidden: ["t2"], order: ["t3", "t2"] });
});

test("a slice is made visible by no more than it takes", () => {
  assert.equal(showing(GROUPS, USUAL, 4), USUAL);
  const hidden: Arrangement = { ...USUAL, hidden: ["g2", "t2"], only: "python" };
  assert.deepEqual(showing(GROUPS, hidden, 4), { ...hidden, hidden: ["t2"] });
  assert.equal(showing(GROUPS, { ...USUAL, only: "frames" }, 2).only, "");
});
