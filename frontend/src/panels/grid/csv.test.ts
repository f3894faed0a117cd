import assert from "node:assert/strict";
import { test } from "node:test";
import type { Column, Page } from "../../api.ts";
import { csvOf } from "./csv.ts";

const column = (name: string, unit: Column["unit"]): Column => ({ name, unit, doc: "", nullable: true });

test("rows of several pages below one head; unknown is empty, formulas are texts", () => {
  const page = (names: (string | null)[], times: (number | null)[]): Page => ({
    view: "", options: {}, all: 4, total: 4, from: 0, rows: names.length, totals: {}, lacks: [],
    columns: { name: { values: names }, time: { values: times } },
  });
  const columns = [column("name", "name"), column("time", "ns"), column("none", "text")];
  const written = csvOf(columns, [page(['a,"b"', "=1+1"], [-5, 1.5]), page([null, ""], [null, 0])]);
  assert.equal(written, 'name,time,none\n"a,""b""",-5,\n\'=1+1,1.5,\n,,\n"",0,\n');
});

test("no rows leave the head", () => {
  assert.equal(csvOf([column("name", "name")], []), "name\n");
});
