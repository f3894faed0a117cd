import assert from "node:assert/strict";
import { test } from "node:test";
import { rows } from "./diff.ts";
import type { Change } from "./diff.ts";

const LINES = ["1", "2", "3", "4", "5", "6", "7", "8", "9", "10"];

function drawn(changes: Change[]): string {
  return rows(LINES, changes).map((row) => `${row.sign}${row.text}`).join(" ").replaceAll("  ", " ").trim();
}

test("a changed line stands between its neighbours", () => {
  assert.equal(drawn([{ at: 5, removed: ["5"], added: ["five", "5b"] }]), "3 4 -5 +five +5b 6 7");
});

test("far changes are apart, near ones in one piece", () => {
  assert.equal(
    drawn([{ at: 1, removed: [], added: ["new"] }, { at: 9, removed: ["9"], added: [] }]),
    "+new 1 2 … 7 8 -9 10",
  );
  assert.equal(
    drawn([{ at: 2, removed: ["2"], added: ["two"] }, { at: 3, removed: ["3"], added: ["three"] }]),
    "1 -2 +two -3 +three 4 5",
  );
});

test("lines may come behind the last", () => {
  assert.equal(drawn([{ at: 11, removed: [], added: ["end"] }]), "9 10 +end");
});

test("numbers are those of the file as it is", () => {
  assert.deepEqual(
    rows(LINES, [{ at: 2, removed: ["2"], added: ["two"] }]).map((row) => row.number),
    [1, 2, null, 3, 4],
  );
});
