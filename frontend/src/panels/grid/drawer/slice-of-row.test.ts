import assert from "node:assert/strict";
import test from "node:test";
import { sliceOfRow } from "./slice-of-row.ts";

test("the slice of a row, or the longest of its slices; a time or a number of a row is none", () => {
  const at = (values: Record<string, number | null>) => (name: string) => values[name] ?? null;
  assert.equal(sliceOfRow("kernels", [{ name: "longest", unit: "id" }], at({ longest: 7 })), 7);
  assert.equal(sliceOfRow("kernels", [{ name: "longest", unit: "id" }], at({ longest: null })), null);
  assert.equal(sliceOfRow("idle", [{ name: "longest", unit: "ns" }], at({ longest: 7 })), null);
  assert.equal(sliceOfRow("syncs", [{ name: "id", unit: "id" }], at({ id: 3 })), 3);
  assert.equal(sliceOfRow("modules", [{ name: "id", unit: "id" }], at({ id: 3 })), null);
});
