import assert from "node:assert/strict";
import { test } from "node:test";
import type { Cell } from "../../../data/api.ts";
import type { FullTable } from "../../../parts/data/full-table.ts";
import { arrivalsOf, beforeOf, spanOf, spreadText } from "./spread.ts";

const CAUSES = { data: { text: "waiting for data", doc: "" } };

function table(rows: readonly Record<string, Cell>[]): FullTable {
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const columns = Object.fromEntries(names.map((name) => [name, rows.map((row) => row[name] ?? null)]));
  return { options: {}, columns, rows: rows.length, total: rows.length, totals: {}, lacks: [] };
}

const THREE = table([
  { label: "rank 0", start: 1_000_000, duration: 9_000_000, wait: 8_000_000, last: false, work: 4_000_000, longest: "compute", name: "gemm" },
  { label: "rank 1", start: 9_000_000, duration: 1_000_000, wait: 0, last: true, cause: "data", excess: 7_000_000 },
  { label: "rank 2", start: 5_000_000, duration: 5_000_000, wait: 4_000_000, last: false },
]);

test("ranks stand in the order in which they came, from the first on", () => {
  const arrivals = arrivalsOf(THREE);
  assert.deepEqual(arrivals.map(({ label, after }) => [label, after]), [["rank 0", 0], ["rank 2", 4_000_000], ["rank 1", 8_000_000]]);
  assert.equal(spanOf(arrivals), 9_000_000);
});

test("the last rank, the waits of the others and the cause are told", () => {
  assert.equal(
    spreadText(THREE, arrivalsOf(THREE), CAUSES),
    "rank 1 came last, 8.00 ms after the first; the 2 others waited 6.00 ms on average. " +
      "Before it rank 1 had 7.00 ms more waiting for data than the median of the others.",
  );
});

test("what is unknown is said", () => {
  const alone = table([{ label: "rank 0", start: 5, duration: 5, wait: null, last: null }]);
  assert.match(spreadText(alone, arrivalsOf(alone), CAUSES), /on one rank only.*unknown/);
  const unaligned = table([...Array(2).keys()].map((rank) => ({ label: `rank ${rank}`, start: 5, duration: 5, wait: null, last: null })));
  assert.match(spreadText(unaligned, arrivalsOf(unaligned), CAUSES), /not aligned.*unknown/);
  assert.deepEqual(beforeOf(THREE, 2, 8_000_000, {}, CAUSES), { time: null, kind: null, name: null, file: null, line: null, more: null });
});

test("what a rank did before is its longest part", () => {
  const before = beforeOf(THREE, 0, 8_000_000, { compute: { text: "computing", doc: "" } }, CAUSES);
  assert.deepEqual([before.time, before.kind, before.name, before.more], ["4.00 ms", "computing", "gemm", null]);
  assert.equal(beforeOf(THREE, 1, 8_000_000, {}, CAUSES).more, "7.00 ms more waiting for data");
  assert.equal(beforeOf(THREE, 1, 80_000_000, {}, CAUSES).more, null); // which is not why the others waited so long
});
