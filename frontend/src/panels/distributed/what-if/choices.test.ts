import assert from "node:assert/strict";
import { test } from "node:test";
import type { FullTable } from "../../../parts/data/full-table.ts";
import { formatSwitched, parseSwitched, predictedAt, rowWithout, savingText, switchesOf, toggled } from "./choices.ts";

const MS = 1e6;
const ROWS = [
  ["", 0, 100, 0, 0],
  ["slow ranks", 1, 99, 1, 1],
  ["unequal stages", 1, 90, 10, 10],
  ["transfers of DP", 1, 95, 3, 5],
  ["slow ranks, unequal stages", 2, 70, 30, 30],
] as const;
const TABLE: FullTable = {
  options: {},
  columns: {
    without: ROWS.map(([without]) => without),
    changes: ROWS.map(([, changes]) => changes),
    step_time: ROWS.map(([, , time]) => time * MS),
    least_saving: ROWS.map(([, , , least]) => least * MS),
    most_saving: ROWS.map(([, , , , most]) => most * MS),
  },
  rows: ROWS.length,
  total: ROWS.length,
  totals: {},
  lacks: [],
};
const SWITCHES = switchesOf(TABLE);

test("each change alone is a switch, with what it saves alone", () => {
  assert.deepEqual(SWITCHES.map(({ title }) => title), ["no slow ranks", "no unequal stages", "data of DP in no time"]);
  assert.deepEqual(SWITCHES.map(({ alone }) => savingText(alone)), ["1.00 ms", "10.0 ms", "3.00 ms to 5.00 ms"]);
});

test("an address holds the changes, in the table's order, and what is none is left out", () => {
  assert.deepEqual(parseSwitched("unequal stages, tea,slow ranks", SWITCHES), ["slow ranks", "unequal stages"]);
  assert.deepEqual(parseSwitched(undefined, SWITCHES), []);
  assert.equal(formatSwitched([]), undefined);
  assert.equal(formatSwitched(["slow ranks", "unequal stages"]), "slow ranks, unequal stages");
});

test("a switch is turned on and off", () => {
  assert.deepEqual(toggled(["unequal stages"], "slow ranks", SWITCHES), ["slow ranks", "unequal stages"]);
  assert.deepEqual(toggled(["slow ranks", "unequal stages"], "slow ranks", SWITCHES), ["unequal stages"]);
});

test("together is a row of its own, and no sum", () => {
  const chosen = ["slow ranks", "unequal stages"];
  const row = rowWithout(TABLE, chosen);
  assert.equal(row, 4);
  const told = predictedAt(TABLE, row, SWITCHES, chosen);
  assert.deepEqual([told?.before, told?.least, told?.most], [100 * MS, 70 * MS, 70 * MS]);
  assert.equal(told?.text, "A step of 100 ms would save 30.0 ms.");
  assert.match(told?.alone ?? "", /1\.00 ms and 10\.0 ms/);
  assert.equal(rowWithout(TABLE, ["unequal stages", "transfers of DP"]), null);
});

test("what saves nothing takes as long, and a loss is more", () => {
  const text = (least: number, most: number) => {
    const columns = { ...TABLE.columns, least_saving: [0, least, 0, 0, 0], most_saving: [0, most, 0, 0, 0] };
    return predictedAt({ ...TABLE, columns }, 1, SWITCHES, ["slow ranks"])?.text;
  };
  assert.equal(text(0, 1), "A step of 100 ms would take as long.");
  assert.equal(text(-2 * MS, -2 * MS), "A step of 100 ms would take 2.00 ms more.");
  assert.equal(text(-2 * MS, 4 * MS), "A step of 100 ms would save −2.00 ms to 4.00 ms.");
});
