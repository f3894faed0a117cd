import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { TraceClock, Job, Options, Page } from "../../../data/api.ts";
import { SameCollectives, parseRankKeys, rankKeysText, shownRanks } from "./multi-rank.ts";
import { MOST_RANKS, ownId, ownTime, ownTrack, placeOfId, placeOfTrack, shownId, shownTime, shownTrack } from "./sources.ts";
import { JointTiles, ownPlaces } from "../tiles/joint.ts";
import { Names } from "../drawing/names.ts";
import { Store } from "../tiles/store.ts";
import { width } from "../tiles/tiles.ts";

function job(...clocks: readonly Pick<TraceClock, "shift" | "drift">[]): Job {
  const ranks = clocks.map((clock, key) => ({
    key, label: `rank ${key}`, rank: key, device: null, residual: 1, traces: [{ trace: `trace ${key}`, origin: null, ...clock }],
  }));
  return { size: clocks.length, ranks, missing: [], refused: [], notes: [], residual: 1, groups: [], facts: [], account: null, orders: [], single_rank_note: null };
}

describe("ranks beside the shown one", () => {
  test("have instants of the same moment at the same instant", () => {
    const clocks = [{ shift: 500, drift: 2e-5 }, { shift: -3_000_000, drift: -1e-5 }];
    const { ranks } = shownRanks(job(...clocks), "trace 0", [1]);
    const [first, second] = ranks;
    assert.ok(first && second);
    const moment = 40_000_000; // by the common clock
    const own = clocks.map(({ shift, drift }) => (moment - shift) / (1 + drift));
    assert.ok(Math.abs(shownTime(first, own[0] ?? 0) - shownTime(second, own[1] ?? 0)) < 1e-6);
    assert.equal(shownTime(first, 77), 77);
    assert.ok(Math.abs(ownTime(second, shownTime(second, 12_345)) - 12_345) < 1e-6);
  });
  test("are left out where nothing tells when they were recorded", () => {
    const { ranks, left } = shownRanks(job({ shift: 0, drift: 0 }, { shift: null, drift: 0 }), "trace 0", [0, 1]);
    assert.deepEqual([ranks.length, left], [1, ["rank 1"]]);
  });
  test("have numbers of their own, the shown one its own", () => {
    const { ranks } = shownRanks(job({ shift: 0, drift: 0 }, { shift: 0, drift: 0 }), "trace 0", [1]);
    const [first, second] = ranks;
    assert.ok(first && second);
    assert.deepEqual([shownId(first, 7), shownTrack(first, 7), shownTrack(first, -1)], [7, 7, -1]);
    const [id, track, counters] = [shownId(second, 7), shownTrack(second, 7), shownTrack(second, -1)];
    assert.deepEqual([ownId(id), ownTrack(track), ownTrack(counters)], [7, 7, -1]);
    assert.deepEqual([placeOfId(id), placeOfTrack(track), placeOfTrack(counters)], [1, 1, 1]);
    assert.equal(shownId(second, -1), -1);
  });
  test("are no more than can be told apart", () => {
    const ranks = Array.from({ length: 12 }, () => ({ shift: 0, drift: 0 }));
    const shown = shownRanks(job(...ranks), "trace 0", ranks.map((_, key) => key));
    assert.deepEqual(shown.ranks.map(({ label }) => label), Array.from({ length: MOST_RANKS }, (_, rank) => `rank ${rank}`));
    assert.deepEqual(shown.left, []);
  });
  test("stand in the address by their keys", () => {
    assert.deepEqual(parseRankKeys("5.0.5.x.-1"), [5, 0]);
    assert.equal(rankKeysText([5, 0]), "0.5");
    assert.equal(rankKeysText([]), undefined);
  });
});

test("the same collective is known on the other ranks, and on no other", () => {
  const { ranks } = shownRanks(job({ shift: 0, drift: 0 }, { shift: 0, drift: 0 }), "trace 0", [1]);
  const [first, second] = ranks;
  assert.ok(first && second);
  const twins = new SameCollectives();
  twins.take(first, [10, 11, null], [0, 1, 2]);
  twins.take(second, [20, 21], [0, 3]);
  assert.deepEqual(twins.of(10), [shownId(second, 20)]);
  assert.deepEqual([twins.of(11), twins.of(99)], [[], []]);
});

describe("tiles of another clock", () => {
  const { ranks } = shownRanks(job({ shift: 0, drift: 0 }, { shift: 300, drift: 0 }), "trace 0", [1]);

  async function drawn() {
    const asked: Options[] = [];
    const ask = async (options: Options): Promise<Page> => {
      asked.push(options);
      const start = Number(options["start"]) + 100;
      const values = { kind: "slice", track: 4, row: 0, start, duration: 50, self: 50, name: "k", count: 1, category: "kernel", busy: 50, id: 9 };
      const columns = Object.fromEntries(Object.entries(values).map(([name, value]) => [name, { values: [value] }]));
      return { view: "timeline", options: {}, all: 1, total: 1, from: 0, rows: 1, columns, totals: {}, lacks: [] };
    };
    const names = new Names();
    const joint = new JointTiles(ranks.map((source) => ({ source, store: new Store(ask, names) })));
    const second = ranks[1];
    assert.ok(second);
    const track = shownTrack(second, 4);
    const wanted = { level: 0, number: 1, track, depth: 0 };
    joint.want([wanted]);
    for (let turn = 0; turn < 20; turn++) await Promise.resolve();
    return { joint, asked, wanted, track, second };
  }

  test("are asked for by that clock, as whole tiles of it", async () => {
    const { joint, asked, wanted } = await drawn();
    assert.deepEqual(asked.map((options) => options["start"]), [0, width(0)]);
    assert.deepEqual(asked.map((options) => options["tracks"]), ["4", "4"]);
    assert.ok(joint.has(wanted));
  });
  test("are drawn by the picture's, each for the stretch it tells about", async () => {
    const { joint, track, second } = await drawn();
    const found = joint.found(track, { level: 0, number: 1 });
    assert.deepEqual(found.map(({ from, to }) => [from, to]), [[300, width(0) + 300], [width(0) + 300, 2 * width(0) + 300]]);
    const [lane] = found[0]?.part.lanes ?? [];
    assert.deepEqual([lane?.start[0], lane?.end[0], lane?.id[0]], [400, 450, shownId(second, 9)]);
    assert.equal(joint.found(track, { level: 0, number: 1 })[0]?.part, found[0]?.part);
  });
  test("lie under a tile of the picture without a gap", () => {
    const second = ranks[1];
    assert.ok(second);
    assert.deepEqual(ownPlaces(second, { level: 3, number: 5 }).map(({ number }) => number), [4, 5]);
    assert.deepEqual(ownPlaces({ ...second, shift: 0 }, { level: 3, number: 5 }).map(({ number }) => number), [5]);
  });
});

describe("counters of another clock", () => {
  const { ranks } = shownRanks(job({ shift: 0, drift: 0 }, { shift: 300, drift: 0 }), "trace 0", [1]);
  const [first, second] = ranks;
  assert.ok(first && second);
  const ask = async (): Promise<Page> => {
    const values = { kind: "counter", name: "queued", start: 100, duration: 50, value: 2, low: 1, high: 3 };
    const columns = Object.fromEntries(Object.entries(values).map(([name, value]) => [name, { values: [value] }]));
    return { view: "timeline", options: {}, all: 1, total: 1, from: 0, rows: 1, columns, totals: {}, lacks: [] };
  };
  const settled = async () => {
    for (let turn = 0; turn < 20; turn++) await Promise.resolve();
  };

  test("stand at the picture's instants, moved once; those of the shown rank at its own", async () => {
    const joint = new JointTiles(ranks.map((source) => ({ source, store: new Store(ask, new Names()) })));
    const [own, other] = [shownTrack(first, -1), shownTrack(second, -1)];
    joint.want([{ level: 0, number: 0, track: own, depth: 0 }, { level: 0, number: 0, track: other, depth: 0 }]);
    await settled();
    const at = (track: number) => joint.samples("queued", { level: 0, number: 0 }, track);
    assert.deepEqual([...new Set(at(own).flatMap(({ start }) => [...start]))], [100]);
    assert.deepEqual(at(other).map(({ start, end }) => [start[0], end[0]]).at(-1), [400, 450]);
    assert.equal(at(other)[0], at(other)[0]);
    assert.deepEqual([joint.samples("queued", { level: 0, number: 0 }, shownTrack({ ...second, at: 7 }, -1)), joint.error], [[], null]);
  });
  test("that cannot be loaded are told, whichever rank's they are", async () => {
    const failing = async () => Promise.reject(new Error("gone"));
    const joint = new JointTiles(ranks.map((source) => ({ source, store: new Store(source.at === 0 ? ask : failing, new Names()) })));
    joint.want([{ level: 0, number: 0, track: shownTrack(first, -1), depth: 0 }, { level: 0, number: 0, track: shownTrack(second, -1), depth: 0 }]);
    await settled();
    assert.equal(joint.error, "gone");
  });
});
