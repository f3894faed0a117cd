import assert from "node:assert/strict";
import { test } from "node:test";
import { editorAddress, NO_EDITOR, parseSetting } from "./editor.ts";

const vscode = { ...NO_EDITOR, editor: "vscode" as const };

test("a line opens in the chosen editor", () => {
  assert.equal(editorAddress(vscode, "/srv/me/train me.py", 31), "vscode://file/srv/me/train%20me.py:31");
  assert.equal(editorAddress(vscode, "C:\\code\\train.py", 3), "vscode://file/C:/code/train.py:3");
  assert.equal(editorAddress({ ...vscode, editor: "pycharm" }, "/a/b.py", 2), "pycharm://open?file=/a/b.py&line=2");
  assert.equal(editorAddress(NO_EDITOR, "/a/b.py", 2), null);
  assert.equal(editorAddress(vscode, "b.py", 2), null);
});

test("an address of one's own may lead to a repository", () => {
  const own = { editor: "own" as const, pattern: "https://git.example/o/r/blob/abc/{path}#L{line}", folder: "/srv/me/r/" };
  assert.equal(editorAddress(own, "/srv/me/r/src/a.py", 7), "https://git.example/o/r/blob/abc/src/a.py#L7");
  assert.equal(editorAddress(own, "./src/a.py", 7), "https://git.example/o/r/blob/abc/src/a.py#L7");
  assert.equal(editorAddress(own, "/elsewhere/a.py", 7), null);
  assert.equal(editorAddress({ ...own, folder: "" }, "/srv/me/r/a.py", 7), null);
});

test("a cell of a notebook is no file that an editor opens", () => {
  const own = { editor: "own" as const, pattern: "https://git.example/{path}#L{line}", folder: "" };
  assert.equal(editorAddress(own, "cell 3.py", 8), "https://git.example/cell%203.py#L8");
  for (const cell of ["cell 3", "notebook cell (25.py)"]) assert.equal(editorAddress(own, cell, 8), null);
});

test("a name from a trace adds nothing to the address, and no address runs anything", () => {
  assert.equal(editorAddress(vscode, "/a/?x#y&z={line}.py", 1), "vscode://file/a/%3Fx%23y%26z%3D%7Bline%7D.py:1");
  for (const pattern of ["javascript:alert('{file}')", " JavaScript:{file}", "data:text/html,{file}", "{file}", "//x/{file}"]) {
    assert.equal(editorAddress({ editor: "own", pattern, folder: "" }, "/a.py", 1), null, pattern);
  }
});

test("what was stored is read, or nothing of it", () => {
  assert.deepEqual(parseSetting(JSON.stringify(vscode)), vscode);
  for (const words of [null, "", "{", "[]", '"vscode"', '{"editor":"emacs","pattern":"","folder":""}', '{"editor":"own"}']) {
    assert.deepEqual(parseSetting(words), NO_EDITOR);
  }
});
