import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { changedLines, patchOf } from "./patch.ts";

const LINES = Array.from({ length: 30 }, (_, at) => `line ${at + 1}`);
const CHANGES = [
  { at: 1, removed: ["line 1"], added: ["first", "second"] },
  { at: 6, removed: ["line 6", "line 7"], added: ["six"] },
  { at: 20, removed: [], added: ["before 20"] },
  { at: 30, removed: ["line 30"], added: [] },
];

test("a patch has the lines around each change, once where changes are near", () => {
  assert.equal(patchOf("train.py", LINES.slice(0, 5), [{ at: 4, removed: ["line 4"], added: ["four"] }]), [
    "--- a/train.py", "+++ b/train.py", "@@ -1,5 +1,5 @@",
    " line 1", " line 2", " line 3", "-line 4", "+four", " line 5", "",
  ].join("\n"));
  const heads = patchOf("/a/b.py", LINES, CHANGES).split("\n").filter((line) => /^(?:@@|---)/.test(line));
  assert.deepEqual(heads, ["--- a/a/b.py", "@@ -1,10 +1,10 @@", "@@ -17,6 +17,7 @@", "@@ -27,4 +28,3 @@"]);
});

test("the changed lines are those that git writes", () => {
  const changed = changedLines(LINES, CHANGES);
  assert.deepEqual(changed.slice(0, 8), ["first", "second", "line 2", "line 3", "line 4", "line 5", "six", "line 8"]);
  assert.deepEqual(changed.slice(-3), ["line 27", "line 28", "line 29"]);
  assert.equal(changed[changed.indexOf("before 20") + 1], "line 20");
  assert.deepEqual(changedLines(LINES, []), LINES);
});

test("git applies it", { skip: spawnSync("git", ["--version"]).status !== 0 && "there is no git" }, () => {
  const folder = mkdtempSync(join(tmpdir(), "patch-"));
  writeFileSync(join(folder, "train.py"), `${LINES.join("\n")}\n`);
  execFileSync("git", ["apply", "-"], { cwd: folder, input: patchOf("train.py", LINES, CHANGES), env: { ...process.env, GIT_DIR: "none" } });
  const changed = readFileSync(join(folder, "train.py"), "utf8").split("\n");
  assert.deepEqual(changed, [
    "first", "second", ...LINES.slice(1, 5), "six", ...LINES.slice(7, 19), "before 20", ...LINES.slice(19, 29), "",
  ]);
});
