import assert from "node:assert/strict";
import test from "node:test";
import type { Cell } from "../../data/api.ts";
import type { FullTable } from "../../parts/data/full-table.ts";
import { initialLine, costsOf, heat, howMark, nextHot, splitPath } from "./costs.ts";

type Line = [file: string | null, line: number | null, how: string | null, device: number, host: number, waits: number, total: number | null];

function table(rows: Line[]): FullTable {
  const column = (at: number): Cell[] => rows.map((row) => row[at] ?? null);
  return {
    options: {},
    columns: {
      file: column(0), line: column(1), how: column(2), device_time: column(3), self_cpu_time: column(4),
      waits: column(5), total_cpu_time: column(6), total_device_time: rows.map(() => null),
    },
    rows: rows.length, total: rows.length, totals: {}, lacks: [],
  };
}

const program = costsOf(table([
  ["/x/net.py", 7, "stack", 0, 50, 0, 50],
  ["/x/train.py", 48, "stack", 0, 80, 70, 85],
  ["/x/train.py", 48, "definition", 0, 18, 0, 300],
  ["/x/train.py", null, "definition", 0, 1, 0, 300],
  [null, null, null, 0, 9, 0, null],
]), undefined);

test("nothing recorded, nothing hot", () => {
  const none = costsOf(table([]), undefined);
  assert.deepEqual([none.files, none.ranked, none.elsewhere], [[], [], null]);
  assert.equal(initialLine(none, undefined, undefined), null);
});

test("a line that is known in two ways is one line, its own times added", () => {
  const line = program.ranked.find((cost) => cost.line === 48);
  assert.deepEqual([line?.host, line?.waits, line?.totalHost, line?.how], [98, 70, 300, ["stack", "definition"]]);
  assert.equal(howMark(line?.how ?? [], { definition: { text: "function", doc: "" } }), "stack, function");
});

test("lines and files are ranked without waits, and all of it adds up", () => {
  assert.deepEqual(program.ranked.map((cost) => heat(cost, "host")), [50, 28, 1]);
  assert.deepEqual(program.files.map((file) => file.file), ["/x/net.py", "/x/train.py"]);
  assert.deepEqual(program.elsewhere, { device: 0, host: 9 });
  assert.equal(program.all.host, 158);
});

test("device time ranks where there is any", () => {
  const both = costsOf(table([["a.py", 1, "stack", 5, 1, 0, 1], ["a.py", 2, "stack", 1, 9, 0, 9]]), undefined);
  assert.deepEqual([both.metric, both.ranked.map((cost) => cost.line)], ["device", [1, 2]]);
  const host = costsOf(table([["a.py", 1, "stack", 5, 1, 0, 1], ["a.py", 2, "stack", 1, 9, 0, 9]]), "host");
  assert.deepEqual(host.ranked.map((cost) => cost.line), [2, 1]);
});

test("the page opens at the hottest line, of a file if one is named", () => {
  assert.deepEqual(initialLine(program, undefined, undefined), { file: "/x/net.py", line: 7 });
  assert.deepEqual(initialLine(program, "/x/train.py", undefined), { file: "/x/train.py", line: 48 });
  assert.deepEqual(initialLine(program, "train.py", "3"), { file: "/x/train.py", line: 3 });
  assert.deepEqual(initialLine(program, "gone.py", "3"), { file: "gone.py", line: 3 });
});

test("the next hot line is colder, across files, and there is an end", () => {
  const [first, second] = program.ranked;
  assert.equal(nextHot(program, undefined, 1), first);
  assert.equal(nextHot(program, first, 1), second);
  assert.equal(nextHot(program, second, 1), undefined);
  assert.equal(nextHot(program, second, -1), first);
});

test("a file has a name and a folder", () => {
  assert.deepEqual(splitPath("/x/y/net.py"), { name: "net.py", folder: "/x/y" });
  assert.deepEqual(splitPath("net.py"), { name: "net.py", folder: "" });
});

test("where the device's times are equal, the host's decide; what has no line is divided by where it ran", () => {
  const both = costsOf(table([["a.py", 1, "stack", 5, 1, 0, 1], ["a.py", 2, "stack", 5, 9, 0, 9], [null, null, null, 3, 4, 0, 0]]), undefined);
  assert.deepEqual(both.ranked.map((cost) => cost.line), [2, 1]);
  assert.deepEqual([both.elsewhere, both.hasMemory], [{ device: 3, host: 4 }, false]);
});

test("memory is known where one line has some, and a line that ran cold leads to the hottest", () => {
  const rows = table([["a.py", 1, "stack", 0, 5, 0, 5], ["a.py", 2, "stack", 0, 0, 0, 0]]);
  const costs = costsOf({ ...rows, columns: { ...rows.columns, cpu_memory: [0, 8] } }, undefined);
  assert.equal(costs.hasMemory, true);
  const cold = costs.ranked.find((cost) => cost.line === 2);
  assert.equal(nextHot(costs, cold, 2), costs.ranked[0]);
});
