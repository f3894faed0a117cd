import assert from "node:assert/strict";
import { test } from "node:test";
import { isCell, placeText } from "./place.ts";

test("a line of a file is as editors open it, one of a cell as people say it", () => {
  assert.equal(placeText("train.py", 8), "train.py:8");
  assert.equal(placeText("cell 3", 8), "cell 3, line 8");
  assert.equal(placeText("notebook cell (25.py)", 8), "notebook cell (25.py), line 8");
  assert.equal(placeText("cell 3", null), "cell 3");
  assert.equal(placeText("/a/cell 3", 8), "/a/cell 3:8");
});

test("files are no cells", () => {
  for (const file of ["cell.py", "cell 3.py", "/nb/cell 3", "notebook cell", "cell"]) assert.equal(isCell(file), false, file);
});
