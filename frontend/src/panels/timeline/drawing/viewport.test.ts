import assert from "node:assert/strict";
import { test } from "node:test";
import { layoutTracks } from "../tracks/layout.ts";
import type { Group, Track } from "../tracks/tracks.ts";
import { RULER, Viewport } from "./viewport.ts";

function track(key: string, id: number, rows: number): Track {
  return {
    key, id, kind: "host", device: null, title: key, label: key, what: "", rows, count: 1, start: 0, end: 1000,
    low: 0, high: 0, peak: null, note: "", open: true,
  };
}

const [PINNED, FIRST, SECOND]: [Group, Group, Group] = [
  { key: "p0", title: "pinned", tracks: [track("t9", 9, 1)], pinned: true },
  { key: "g0", title: "host", tracks: [track("t1", 1, 2), track("c1", -1, 1)] },
  { key: "g1", title: "device", tracks: [track("t2", 2, 5)] },
];

/** 1 ns is half a pixel; lines of a pinned and two other groups, of which not all fit. */
function viewport(groups: Group[] = [PINNED, FIRST, SECOND], height = 160): Viewport {
  const found = new Viewport({ from: 0, to: 1000 });
  found.width = 500;
  found.height = height;
  found.layout = layoutTracks(groups, new Set());
  return found;
}

test("times and places follow the shown span, which stays within its limits", () => {
  const shown = viewport();
  shown.look({ from: 900, to: 1400 });
  assert.deepEqual(shown.span, { from: 500, to: 1000 });
  assert.deepEqual([shown.x(750), shown.time(250), shown.pixel], [250, 750, 1]);
});

test("tracks are scrolled to their end and no further", () => {
  const shown = viewport();
  assert.equal(shown.scroll, 0);
  shown.scrollTo(1e6);
  assert.equal(shown.scroll, shown.layout.height - (160 - RULER));
  shown.scrollTo(-5);
  assert.equal(shown.scroll, 0);
  const high = viewport(undefined, 10_000);
  high.scrollTo(50);
  assert.equal(high.scroll, 0);
});

test("pinned lines stay where they are, and others scroll below them", () => {
  const shown = viewport();
  const [group, pinned, other, host] = shown.layout.lines;
  assert.ok(group && pinned && other && host);
  assert.equal(shown.fixed, group.height + pinned.height);
  shown.scrollTo(30);
  assert.deepEqual([shown.top(pinned), shown.top(other)], [RULER + pinned.y, RULER + other.y - 30]);
  assert.deepEqual([shown.ceiling(pinned), shown.ceiling(other)], [RULER, RULER + shown.fixed]);
  assert.equal(shown.lineAt(RULER + pinned.y), pinned);
  assert.equal(shown.lineAt(RULER + shown.fixed), shown.layout.lines.find((line) => line.y + line.height > shown.fixed + 30));
  assert.equal(shown.lineAt(RULER - 1), undefined);
  assert.equal(viewport([FIRST]).fixed, 0);
});

test("pinned lines that leave no room for others scroll like them", () => {
  const all = viewport([PINNED]);
  const [, pinned] = all.layout.lines;
  assert.ok(pinned);
  all.height = RULER + (pinned.y + pinned.height) / 0.6;
  assert.equal(all.fixed, pinned.y + pinned.height);
  all.height -= 1;
  assert.equal(all.fixed, pinned.y);
});

test("lines are seen as far as the picture reaches, or a margin beyond", () => {
  const shown = viewport([FIRST, SECOND], RULER + 30);
  const keys = (margin?: number) => shown.seen(margin).map((line) => line.key);
  assert.deepEqual(keys(), ["g0", "t1"]);
  assert.deepEqual(keys(1000), ["g0", "t1", "c1", "g1", "t2"]);
  shown.scrollTo(24);
  assert.deepEqual(keys(), ["t1"]);
});

test("an area is of the tracks that it touches, groups and what pinned lines cover left out", () => {
  const shown = viewport(undefined, 400);
  const [, pinned, , host, counter, , device] = shown.layout.lines;
  assert.ok(pinned && host && counter && device);
  assert.deepEqual(shown.tracksBetween(0, 400), ["t9", "t1", "c1", "t2"]);
  assert.deepEqual(shown.tracksBetween(shown.top(host) + 1, shown.top(counter)), ["t1"]);
  assert.deepEqual(shown.tracksBetween(shown.top(host) + host.height, shown.top(device) + 1), ["c1", "t2"]);
  shown.height = 200;
  shown.scrollTo(host.y + host.height - shown.fixed);
  assert.deepEqual(shown.tracksBetween(RULER, 200), ["t9", "c1", "t2"]);
});

test("a line is found by its track, and a counter by none", () => {
  const shown = viewport();
  assert.equal(shown.lineOf(2)?.key, "t2");
  assert.equal(shown.lineOf(-1), undefined);
  const host = shown.layout.lines.find((line) => line.key === "t1");
  assert.ok(host);
  assert.equal(shown.rowsTop(host), shown.top(host) + host.head);
});
