import assert from "node:assert/strict";
import { test } from "node:test";
import type { Column, OptionSpec, ViewSpec } from "../../../data/api.ts";
import { nextSort, queryOf, readState, wordOf, stateParameters } from "./state.ts";

const column = (name: string, unit: Column["unit"]): Column => ({ name, unit, doc: "", nullable: true, labels: {} });
const OPTIONS: OptionSpec[] = [
  { name: "by", type: "choice", default: "name", choices: ["name", "line"], parts: [] },
  { name: "counted", type: "flag", default: false, choices: [], parts: [] },
  { name: "top", type: "int", default: 0, choices: [], parts: [] },
  { name: "sort", type: "text", default: "", choices: [], parts: [] },
];
const SPEC: ViewSpec = {
  name: "operators",
  title: "",
  doc: "",
  needs: [],
  across: false,
  options: OPTIONS,
  columns: [column("name", "name"), column("time", "ns"), column("size", "bytes"), column("used", "flag")],
};

test("an empty address is the view as it is", () => {
  const state = readState({}, SPEC);
  assert.deepEqual(state, { sort: "", find: "", where: [], columns: null, widths: {}, row: null, options: {} });
  assert.deepEqual(queryOf(state, SPEC.columns), {});
});

test("what is written is read back", () => {
  const state = {
    sort: "-time",
    find: "conv",
    where: [{ column: "time", op: "from" as const, value: "1 ms" }],
    columns: ["time", "name"],
    widths: { name: 300 },
    row: 12,
    options: { by: "line", counted: true, top: 5, sort: "x" },
  };
  const words = stateParameters(state, SPEC);
  assert.deepEqual(readState(words as Record<string, string>, SPEC), state);
  assert.equal(words[".sort"], "x");
});

test("defaults leave the address", () => {
  const empty = { sort: "", find: "", where: [], columns: null, widths: {}, row: null, options: { by: "name", top: 0 } };
  for (const word of Object.values(stateParameters(empty, SPEC))) assert.equal(word, undefined);
});

test("what an address says wrongly is left out", () => {
  const state = readState(
    { sort: "-nonesuch", cols: "nonesuch", where: "[{]", widths: "name:x,nonesuch:5", row: "-1", by: "x", top: "1.5", counted: "maybe" },
    SPEC,
  );
  assert.deepEqual(state, readState({}, SPEC));
  assert.deepEqual(readState({ where: '[1, null, {"column": "time", "op": "over", "value": "1"}]' }, SPEC).where, []);
});

test("widths are held to what can be seen", () => {
  assert.deepEqual(readState({ widths: "name:1,time:99999" }, SPEC).widths, { name: 40, time: 1600 });
});

test("quantities are asked for as plain numbers", () => {
  const where = [
    { column: "time", op: "from" as const, value: "1.5 ms" },
    { column: "size", op: "to" as const, value: "2 MiB" },
    { column: "name", op: "has" as const, value: "1 ms" },
    { column: "used", op: "is" as const, value: "yes" },
    { column: "time", op: "is" as const, value: "" },
    { column: "time", op: "from" as const, value: "much" },
  ];
  const asked = queryOf({ ...readState({}, SPEC), where }, SPEC.columns).where ?? [];
  assert.deepEqual(asked.map((filter) => filter.value), ["1500000", "2097152", "1 ms", "yes", "", "much"]);
});

test("an option that the panel sets is left out of the address, and the view's own is not", () => {
  const [option] = SPEC.options;
  assert.ok(option);
  const word = { [option.name]: String(option.default) };
  const panel = { [option.name]: "other" };
  assert.deepEqual(readState(word, SPEC, [], panel).options, { [option.name]: option.default });
  assert.deepEqual(stateParameters({ options: { [option.name]: option.default } }, SPEC, [], panel), word);
  assert.deepEqual(stateParameters({ options: panel }, SPEC, [], panel), { [option.name]: undefined });
});

test("a word of the panel's own is not an option's", () => {
  assert.equal(wordOf("by"), "by");
  assert.equal(wordOf("row"), ".row");
  assert.equal(wordOf("name", ["name"]), ".name");
});

test("a click sorts numbers by the largest first, texts from A, and the third ends it", () => {
  assert.equal(nextSort("", "time", true), "-time");
  assert.equal(nextSort("-time", "time", true), "time");
  assert.equal(nextSort("time", "time", true), "");
  assert.equal(nextSort("-time", "name", false), "name");
  assert.equal(nextSort("name", "name", false), "-name");
  assert.equal(nextSort("-name", "name", false), "");
});
