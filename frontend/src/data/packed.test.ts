import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { deflateSync } from "node:zlib";
import type { Values } from "./api.ts";
import { decodeColumns, decompress } from "./packed.ts";
import type { PackedPage, PackedValues } from "./packed.ts";

interface Golden {
  cases: {
    title: string;
    rows: number;
    columns: Record<string, Values>;
    packed: Record<string, PackedValues>;
  }[];
}

const FILE = new URL("../../../tests/golden/packed_columns.json", import.meta.url);
const golden = JSON.parse(readFileSync(FILE, "utf8")) as Golden;

function page(rows: number, packed: Record<string, PackedValues>): PackedPage {
  return { view: "v", options: {}, all: rows, total: rows, from: 0, rows, columns: packed, totals: {}, lacks: [] };
}

describe("columns are what they were before they were packed", () => {
  for (const { title, rows, columns: told, packed } of golden.cases) {
    test(title, () => assert.deepEqual(decodeColumns(page(rows, packed)), told));
  }
});

test("a packed value is deflated JSON in base64", async () => {
  const value = { name: "größer", rows: [1, null, "</script>"] };
  const packed = deflateSync(JSON.stringify(value)).toString("base64");
  assert.deepEqual(await decompress(packed), value);
});

test("what is damaged is refused", async () => {
  const packed = deflateSync("[1, 2, 3]").toString("base64");
  await assert.rejects(decompress(packed.slice(0, 8)));
});
