import assert from "node:assert/strict";
import { test } from "node:test";
import type { Column, Page } from "../../../data/api.ts";
import { csvOf } from "./csv.ts";

const column = (name: string, unit: Column["unit"]): Column => ({ name, unit, doc: "", nullable: true, labels: {} });

test("rows of several pages below one head; unknown is empty, formulas are texts", () => {
  const page = (names: (string | null)[], times: (number | null)[]): Page => ({
    view: "", options: {}, all: 4, total: 4, from: 0, rows: names.length, totals: {}, lacks: [],
    columns: { name: { values: names }, time: { values: times } },
  });
  const columns = [column("name", "name"), column("time", "ns"), column("none", "text")];
  const written = csvOf(columns, [page(['a,"b"', "=1+1"], [-5, 1.5]), page([null, ""], [null, 0])]);
  assert.equal(written, 'name,time,none\n"a,""b""",-5,\n\'=1+1,1.5,\n,,\n"",0,\n');
});

test("what a spreadsheet of another country would compute is a text, too", () => {
  const names = ["a;=1+1", "\uff1d1+1", " =1", "\t=1", "a; b;c", "a-b=c"];
  const page: Page = {
    view: "", options: {}, all: 6, total: 6, from: 0, rows: 6, totals: {}, lacks: [],
    columns: { name: { values: names } },
  };
  const written = csvOf([column("name", "name")], [page]);
  assert.equal(written, "name\na;'=1+1\n'\uff1d1+1\n' =1\n'\\t=1\na; b;c\na-b=c\n");
});

test("no rows leave the head", () => {
  assert.equal(csvOf([column("name", "name")], []), "name\n");
});
